/* Binary payloads of NVTX ranges. Each starts with its domain and schema and its sizes (32 bytes), then come the fields, at the
 * offsets and of the types that NVTX_PAYLOAD_SCHEMA_ENTRIES states. The types are NVTX_PAYLOAD_ENTRY_TYPE_* of
 * nvToolsExtPayload.h. NCCL describes its collectives so. */
#include "base/search.h"
#include "input/nsys/nsys.h"

enum { HEADER_BYTES = 32, SCHEMA_AT = 8, OWN_TYPES = 1 << 24, FIELDS_MAX = 1024 };

struct nsys_payload_field {
	int64_t domain, schema, offset, type;
	uint32_t name;
	bool nccl;       /* speaks of a communicator of NCCL's */
};

struct nsys_payloads {
	struct nsys_payload_field *field;
	uint32_t n, cap;
};

struct nsys_payloads *nsys_payloads_load(struct nsys *n)
{
	static const char *const columns[] = {"domainId", "schemaId", "offset", "type", "name", NULL};
	struct nsys_payloads *p = NEW(struct nsys_payloads);
	const char *table = nsys_find_table(n, "NVTX_PAYLOAD_SCHEMA_ENTRIES");
	struct sqlscan s;
	struct err e;
	if (!table)
		return p;
	if (sqlscan_open(&s, &n->db, table, columns, &e) < 0) {
		diag_add(&n->p->diags, "unreadable-table", DIAG_LOSS, -1, "%s", e.msg);
		return p;
	}
	while (p->n < FIELDS_MAX && sqlscan_next(&s)) {
		struct nsys_payload_field f;
		bool domain = sqlscan_i64(&s, 0, &f.domain), schema = sqlscan_i64(&s, 1, &f.schema), type = sqlscan_i64(&s, 3, &f.type);
		sqlscan_i64(&s, 2, &f.offset); /* of the first field it is NULL: 0 */
		f.name = nsys_intern_cell(n, &s, 4);
		f.nccl = str_starts(sqlscan_str(&s, 4), STR("NCCL communicator"));
		bool repeated = false;         /* every process states its schemas anew */
		for (uint32_t i = 0; i < p->n && !repeated; i++)
			repeated = p->field[i].domain == f.domain && p->field[i].schema == f.schema && p->field[i].offset == f.offset;
		if (!domain || !schema || !type || repeated || f.offset < 0)
			continue;
		MEM_PUSH(p->field, p->n, p->cap, f);
	}
	if (p->n == FIELDS_MAX && sqlscan_next(&s))
		diag_add(&n->p->diags, "too-many-fields", DIAG_LOSS, -1, "table %s describes more than %d fields of payloads: the others are not read",
		         table, FIELDS_MAX);
	sqlscan_close(&s);
	return p;
}

void nsys_payloads_free(struct nsys_payloads *p)
{
	if (p)
		mem_free(p->field);
	mem_free(p);
}

bool nsys_payloads_are_nccl(const struct nsys_payloads *p, int64_t domain)
{
	return ANY_WHERE(i, 0, p->n, p->field[i].domain == domain && p->field[i].nccl);
}

static uint64_t little_endian(const char *at, unsigned bytes)
{
	uint64_t v = 0;
	for (unsigned i = bytes; i-- > 0;)
		v = v << 8 | (unsigned char)at[i];
	return v;
}

/* Bytes of an integer type and whether it is signed; 0 = not one that is read. Types of the program's own are enumerations. */
static unsigned type_bytes(int64_t type, bool *is_signed)
{
	static const struct {
		uint8_t bytes, is_signed;
	} types[] = {[3] = {2, 1}, [4] = {2, 0}, [5] = {4, 1}, [6] = {4, 0}, [7] = {8, 1}, [8] = {8, 0}, [9] = {8, 1}, [10] = {8, 0},
	             [11] = {1, 1}, [12] = {1, 0}, [13] = {2, 1}, [14] = {2, 0}, [15] = {4, 1}, [16] = {4, 0}, [17] = {8, 1},
	             [18] = {8, 0}, [22] = {8, 0}, [23] = {8, 0}};
	*is_signed = false;
	if (type >= OWN_TYPES)
		return 4;
	if (type < 0 || type >= (int64_t)(sizeof types / sizeof types[0]))
		return 0;
	*is_signed = types[type].is_signed;
	return types[type].bytes;
}

static void nsys_payload_put_number(struct buf *b, uint64_t v, unsigned bytes, bool is_signed)
{
	unsigned shift = 64 - 8 * bytes;
	if (is_signed)
		buf_i64(b, (int64_t)(v << shift) >> shift);
	else
		buf_printf(b, "%llu", (unsigned long long)v);
}

unsigned nsys_payload_args(struct nsys *n, const struct nsys_payloads *p, struct str bytes, struct arg_pair *pair, unsigned max)
{
	unsigned k = 0;
	if (bytes.n < HEADER_BYTES) {
		NSYS_DIAG(n, "damaged-payload", DIAG_REPAIR, ": a payload of %zu bytes, at least %d were expected", bytes.n, HEADER_BYTES);
		return 0;
	}
	int64_t domain = (int64_t)little_endian(bytes.p, 4), schema = (int64_t)little_endian(bytes.p + SCHEMA_AT, 4);
	uint64_t room = bytes.n - HEADER_BYTES;
	for (uint32_t i = 0; i < p->n && k < max; i++) {
		const struct nsys_payload_field *f = &p->field[i];
		bool is_signed;
		unsigned size = type_bytes(f->type, &is_signed);
		if (f->domain != domain || f->schema != schema || !size || (uint64_t)f->offset > room || size > room - (uint64_t)f->offset)
			continue;
		struct buf b = {0};
		nsys_payload_put_number(&b, little_endian(bytes.p + HEADER_BYTES + f->offset, size), size, is_signed);
		pair[k++] = (struct arg_pair){f->name, intern_put(&n->p->strings, b.p, b.n), 0};
		buf_release(&b);
	}
	if (!k)
		NSYS_DIAG(n, "unknown-payload", DIAG_NOTE, ": no schema says what is in its payload");
	return k;
}
