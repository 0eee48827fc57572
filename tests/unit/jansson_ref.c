#include "jansson_ref.h"

#include <jansson.h>

static const json_t *node(const struct ref *r)
{
	return (const json_t *)r;
}

struct ref *ref_parse(const char *p, size_t n)
{
	json_error_t e;
	return (struct ref *)json_loadb(p, n, JSON_DECODE_ANY | JSON_ALLOW_NUL, &e);
}

void ref_free(struct ref *root)
{
	json_decref((json_t *)root);
}

enum ref_kind ref_kind(const struct ref *r)
{
	switch (json_typeof(node(r))) {
	case JSON_OBJECT: return REF_OBJECT;
	case JSON_ARRAY: return REF_ARRAY;
	case JSON_STRING: return REF_STRING;
	case JSON_INTEGER: return REF_INTEGER;
	case JSON_REAL: return REF_REAL;
	case JSON_TRUE: return REF_TRUE;
	case JSON_FALSE: return REF_FALSE;
	default: return REF_NULL;
	}
}

size_t ref_size(const struct ref *r)
{
	return ref_kind(r) == REF_OBJECT ? json_object_size(node(r)) : json_array_size(node(r));
}

const struct ref *ref_member(const struct ref *r, struct str key)
{
	char name[4096];
	if (key.n >= sizeof name)
		return NULL;
	memcpy(name, key.p, key.n);
	name[key.n] = 0;
	return (const struct ref *)json_object_get(node(r), name);
}

const struct ref *ref_element(const struct ref *r, size_t i)
{
	return (const struct ref *)json_array_get(node(r), i);
}

struct str ref_string(const struct ref *r)
{
	return (struct str){json_string_value(node(r)), json_string_length(node(r))};
}

int64_t ref_integer(const struct ref *r)
{
	return json_integer_value(node(r));
}

double ref_number(const struct ref *r)
{
	return json_number_value(node(r));
}
