/* Structs as bytes and back, by tables that name each field once: for files and for other processes of the same machine type.
 *
 * A table is a list of rows F(S, KIND, ...), one for each field of the struct, in the order of the struct:
 *
 *   #define POINT_FIELDS(F, S) F(S, INT, x, 0, 100) F(S, TEXT, name)
 *   PACK_TYPE(point, POINT_FIELDS)                  gives point_layout of struct point
 *
 *   INT(field, least, most)      any integer
 *   FLAG(field)                  a bool
 *   REAL(field)                  a double
 *   INTS(field, n, least, most)  an array of n int64
 *   TEXT(field)                  a struct str
 *   STRUCT(field, type)          a struct with a table of its own
 *   REF(field, R, count)         an index: below the uint32 `count` of struct R, which is the one that is packed as a whole
 *   LIST(field, n, least, most)  int64 *field and uint32 n behind it; allocated
 *   ROWS(field, n, type)         struct type *field and uint32 n behind it; allocated
 *   TEXTS(field)                 a struct intern
 *   LATER(field, value)          an integer that is not packed, and has this value when read
 *   OWN(field)                   not packed, and left alone when read
 *
 * A field without a row does not compile. ROWS are packed field by field: the first field of all rows, then the second, ... An integer is packed as its difference from the row
 * before: zigzag, 7 bits a byte, least first, in as few bytes as it takes. So times that follow each other take 3 or 4 bytes. The same struct gives the same bytes, and a struct that
 * was read gives the bytes that it was read from. */
#ifndef OPSCOPE_BASE_PACK_H
#define OPSCOPE_BASE_PACK_H

#include "base/buf.h"
#include "base/intern.h"

enum pack_kind { PACK_INT, PACK_FLAG, PACK_REAL, PACK_INTS, PACK_TEXT, PACK_STRUCT, PACK_REF, PACK_LIST, PACK_ROWS, PACK_TEXTS, PACK_LATER, PACK_OWN };

struct pack_type;

struct pack_field {
	const char *name;
	enum pack_kind kind;
	uint8_t size;                /* INT, REF, LATER: bytes of the integer */
	bool is_signed;
	size_t at;                   /* in its struct */
	size_t count_at;             /* LIST, ROWS: of the number of elements, in its struct. REF: of the limit, in the whole */
	uint32_t n;                  /* INTS */
	int64_t least, most;         /* of a value; LATER: the value */
	const struct pack_type *of;  /* STRUCT, ROWS */
};

struct pack_type {
	const char *name;
	const struct pack_field *field;
	unsigned n;
	size_t size;
	const char *text;            /* the rows of its own table, by which bytes of another version are told */
};

/* Appends *whole, a struct of that type. Its texts are copied. */
void pack_put(const struct pack_type *type, const void *whole, struct buf *out);

/* Fills *whole, which is zeroed (and its interners initialised), from all of the bytes; its texts go into the arena. False where they are not of such a struct, or a value is
 * out of its range: *why then names the field. What was allocated stands in *whole in any case: the caller frees it as it frees any. */
bool pack_take(const struct pack_type *type, struct str bytes, struct arena *a, void *whole, const char **why);

/* Tells tables apart: by this type's rows, and those of the types in it. */
uint64_t pack_version(const struct pack_type *type);

#define PACK_INTEGER_(S, f) .name = #f, .at = offsetof(S, f), .size = sizeof(((S *)0)->f), .is_signed = (__typeof__(((S *)0)->f))-1 < (__typeof__(((S *)0)->f))1
#define PACK_FIELD_(S, KIND, ...) {PACK_FIELD_##KIND(S, __VA_ARGS__)},
#define PACK_FIELD_INT(S, f, lo, hi) .kind = PACK_INT, PACK_INTEGER_(S, f), .least = (lo), .most = (hi)
#define PACK_FIELD_FLAG(S, f) .kind = PACK_FLAG, .name = #f, .at = offsetof(S, f), .size = sizeof(bool), .most = 1
#define PACK_FIELD_REAL(S, f) .kind = PACK_REAL, .name = #f, .at = offsetof(S, f)
#define PACK_FIELD_INTS(S, f, count, lo, hi) .kind = PACK_INTS, .name = #f, .at = offsetof(S, f), .size = sizeof(int64_t), .is_signed = true, .n = (count), .least = (lo), .most = (hi)
#define PACK_FIELD_TEXT(S, f) .kind = PACK_TEXT, .name = #f, .at = offsetof(S, f)
#define PACK_FIELD_STRUCT(S, f, type) .kind = PACK_STRUCT, .name = #f, .at = offsetof(S, f), .of = &type##_layout
#define PACK_FIELD_REF(S, f, R, count) .kind = PACK_REF, PACK_INTEGER_(S, f), .count_at = offsetof(R, count), .most = UINT32_MAX
#define PACK_FIELD_LIST(S, f, count, lo, hi) .kind = PACK_LIST, .name = #f, .at = offsetof(S, f), .size = sizeof(int64_t), .is_signed = true, .count_at = offsetof(S, count), .least = (lo), .most = (hi)
#define PACK_FIELD_ROWS(S, f, count, type) .kind = PACK_ROWS, .name = #f, .at = offsetof(S, f), .count_at = offsetof(S, count), .of = &type##_layout
#define PACK_FIELD_TEXTS(S, f) .kind = PACK_TEXTS, .name = #f, .at = offsetof(S, f)
#define PACK_FIELD_LATER(S, f, value) .kind = PACK_LATER, PACK_INTEGER_(S, f), .least = (value)
#define PACK_FIELD_OWN(S, f) .kind = PACK_OWN, .name = #f, .at = offsetof(S, f)

#define PACK_WORDS_(S, ...) #__VA_ARGS__ "\n"

/* A value for each field, in order: a field that has no row is one that the compiler misses. */
#define PACK_VALUE_(S, KIND, ...) PACK_VALUE_##KIND
#define PACK_VALUE_INT 0,
#define PACK_VALUE_FLAG 0,
#define PACK_VALUE_REAL 0,
#define PACK_VALUE_INTS {},
#define PACK_VALUE_TEXT {},
#define PACK_VALUE_STRUCT {},
#define PACK_VALUE_REF 0,
#define PACK_VALUE_LIST 0, 0,
#define PACK_VALUE_ROWS 0, 0,
#define PACK_VALUE_TEXTS {},
#define PACK_VALUE_LATER 0,
#define PACK_VALUE_OWN {},

#define PACK_TYPE(type, FIELDS)                                                                        \
	_Pragma("GCC diagnostic push")                                                                 \
	_Pragma("GCC diagnostic error \"-Wmissing-field-initializers\"")                               \
	static const struct type type##_has_rows __attribute__((unused)) = {FIELDS(PACK_VALUE_, struct type)}; \
	_Pragma("GCC diagnostic pop")                                                                  \
	static const struct pack_field type##_fields[] = {FIELDS(PACK_FIELD_, struct type)};           \
	static const struct pack_type type##_layout = {#type, type##_fields, sizeof type##_fields / sizeof *type##_fields, sizeof(struct type), FIELDS(PACK_WORDS_, struct type)};

#endif
