/* Text in HTML. */
#ifndef OPSCOPE_BASE_HTML_TEXT_H
#define OPSCOPE_BASE_HTML_TEXT_H

#include "base/buf.h"

/* Appends s as text or as a quoted attribute's value: what HTML reads as markup is escaped, what could change how a reader sees other
 * text (utf8_is_unsafe) is spelt out. */
void html_put_text(struct buf *out, struct str s);

/* Appends s, made safe in the same way, as a JavaScript string in quotes: no < either, so that it may stand in a script element. */
void html_put_script_string(struct buf *out, struct str s);

#endif
