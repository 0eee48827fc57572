#include "op/dtype.h"

static const struct dtype_row {
	const char *name, *brief;
	int bits;
	enum dtype_kind kind;
} rows[DTYPES] = {
	[DTYPE_UNKNOWN] = {"unknown", "?", 0, DTYPE_KIND_UNKNOWN},
#define DTYPE(id, bits, name, brief, kind) [DTYPE_##id] = {name, brief, bits, DTYPE_KIND_##kind},
#include "op/dtypes.def"
#undef DTYPE
};

static const struct name_row {
	struct str name;
	enum dtype type;
} names[] = {
#define DTYPE(id, bits, name, ...) {{name, sizeof(name) - 1}, DTYPE_##id},
#define DTYPE_ALIAS(id, name) {{name, sizeof(name) - 1}, DTYPE_##id},
#include "op/dtypes.def"
#undef DTYPE
#undef DTYPE_ALIAS
};

enum dtype dtype_find(struct str name)
{
	while (str_skip(&name, STR("*")) || str_skip(&name, STR("torch.")) || str_skip(&name, STR("c10::")) || str_skip(&name, STR("at::")))
		;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (names[i].name.n == name.n && names[i].name.p[0] == name.p[0] && str_eq(names[i].name, name))
			return names[i].type;
	return DTYPE_UNKNOWN;
}

static const struct dtype_row *dtype_row_of_(enum dtype t)
{
	return &rows[t > DTYPE_UNKNOWN && t < DTYPES ? t : DTYPE_UNKNOWN];
}

const char *dtype_name(enum dtype t) { return dtype_row_of_(t)->name; }
const char *dtype_short(enum dtype t) { return dtype_row_of_(t)->brief; }
int dtype_bits(enum dtype t) { return dtype_row_of_(t)->bits; }
enum dtype_kind dtype_kind(enum dtype t) { return dtype_row_of_(t)->kind; }

enum dtype dtype_of_code(int64_t code)
{
	static const unsigned char types[] = {
		[0] = DTYPE_UINT8,      [1] = DTYPE_INT8,        [2] = DTYPE_INT16,        [3] = DTYPE_INT32,        [4] = DTYPE_INT64,
		[5] = DTYPE_FLOAT16,    [6] = DTYPE_FLOAT32,     [7] = DTYPE_FLOAT64,      [8] = DTYPE_COMPLEX32,    [9] = DTYPE_COMPLEX64,
		[10] = DTYPE_COMPLEX128, [11] = DTYPE_BOOL,      [12] = DTYPE_QINT8,       [13] = DTYPE_QUINT8,      [14] = DTYPE_QINT32,
		[15] = DTYPE_BFLOAT16,  [16] = DTYPE_QUINT4X2,   [17] = DTYPE_QUINT2X4,    [23] = DTYPE_FP8_E5M2,    [24] = DTYPE_FP8_E4M3,
		[25] = DTYPE_FP8_E5M2FNUZ, [26] = DTYPE_FP8_E4M3FNUZ, [27] = DTYPE_UINT16, [28] = DTYPE_UINT32,      [29] = DTYPE_UINT64,
		[44] = DTYPE_FP8_E8M0,  [45] = DTYPE_FP4X2,
	};
	return code >= 0 && code < (int64_t)(sizeof types) ? (enum dtype)types[code] : DTYPE_UNKNOWN;
}
