/* From what the tolerant reader (io/json.h) takes to what every reader of JSON takes. */
#ifndef OPSCOPE_IO_JSON_VALID_H
#define OPSCOPE_IO_JSON_VALID_H

#include "base/buf.h"

/* Nothing but printable ASCII without quotes and back-slashes: stands in a JSON string as it is. */
bool json_is_plain(struct str s);

/* `scratch` is overwritten. Both append valid JSON whatever the text is; what is valid on one line stays as it is, blanks included.
 *
 * The raw text of a string, as json_value slices it: in quotes, with escapes that were none and control characters mended, and bytes that
 * are not UTF-8 as U+FFFD. */
void json_put_raw(struct buf *out, struct str raw, struct buf *scratch);

/* Any other value, as json_value slices it, with JSON_PADDING readable bytes behind it: bare words become strings, and so does what cannot be
 * understood; arrays and objects come on one line as json_one_line makes it. */
void json_put_valid(struct buf *out, struct str raw, struct buf *scratch);

/* The same of a text with nothing behind it. */
void json_put_valid_text(struct buf *out, struct str s);

#endif
