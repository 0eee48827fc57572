/* A reference JSON tree, read by jansson. A file of its own, because jansson's names are those of io/json.h. */
#ifndef OPSCOPE_TESTS_UNIT_JANSSON_REF_H
#define OPSCOPE_TESTS_UNIT_JANSSON_REF_H

#include "base/str.h"

enum ref_kind { REF_OBJECT, REF_ARRAY, REF_STRING, REF_INTEGER, REF_REAL, REF_TRUE, REF_FALSE, REF_NULL };

struct ref; /* any node; the root owns them all */

/* NULL when jansson does not take it. Any value may be the root. */
struct ref *ref_parse(const char *p, size_t n);
void ref_free(struct ref *root);

enum ref_kind ref_kind(const struct ref *r);
size_t ref_size(const struct ref *r); /* members or elements */
const struct ref *ref_member(const struct ref *r, struct str key);
const struct ref *ref_element(const struct ref *r, size_t i);
struct str ref_string(const struct ref *r);
int64_t ref_integer(const struct ref *r);
double ref_number(const struct ref *r);

#endif
