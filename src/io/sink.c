#include "io/sink.h"

#include "base/mem.h"
#include "io/atomic.h"

#include <errno.h>
#include <zlib.h>

struct sink_packer {
	struct mem_undo undo;
	z_stream z;
	unsigned char out[SINK_BLOCK];
};

enum { LEVEL = 4, GZIP_WINDOW = 15 + 16, MEMORY = 8 }; /* level 4: within 6 % of the default's size in half its time */

static void sink_abandon(void *packer)
{
	deflateEnd(&((struct sink_packer *)packer)->z);
}

void sink_init(struct sink *s, int fd, bool gzip)
{
	*s = (struct sink){.fd = fd};
	if (!gzip)
		return;
	s->packer = NEW(struct sink_packer);
	if (deflateInit2(&s->packer->z, LEVEL, Z_DEFLATED, GZIP_WINDOW, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK)
		mem_fail(0);
	mem_undo_begin(&s->packer->undo, sink_abandon, s->packer);
}

void sink_init_take(struct sink *s, int (*take)(void *context, struct buf *text), void *context)
{
	*s = (struct sink){.fd = -1, .take = take, .context = context};
}

static int write_out(struct sink *s, struct str bytes)
{
	if (!s->error && fd_write_all(s->fd, bytes) < 0)
		s->error = errno ? errno : EIO;
	return s->error ? -1 : 0;
}

/* zlib counts in 32 bits. */
static int pack_piece(struct sink *s, struct str piece, int flush)
{
	struct sink_packer *k = s->packer;
	k->z.next_in = (unsigned char *)(uintptr_t)piece.p;
	k->z.avail_in = (unsigned)piece.n;
	do {
		k->z.next_out = k->out;
		k->z.avail_out = sizeof k->out;
		deflate(&k->z, flush);
		if (write_out(s, (struct str){(char *)k->out, sizeof k->out - k->z.avail_out}) < 0)
			return -1;
	} while (!k->z.avail_out);
	return 0;
}

static int sink_pack(struct sink *s, int flush)
{
	enum { PIECE = 1 << 30 };
	struct str rest = buf_view(&s->buf);
	for (; rest.n > PIECE; rest.p += PIECE, rest.n -= PIECE)
		if (pack_piece(s, (struct str){rest.p, PIECE}, Z_NO_FLUSH) < 0)
			return -1;
	return pack_piece(s, rest, flush);
}

static int sink_hand_over(struct sink *s)
{
	s->error = s->take(s->context, &s->buf);
	return s->error ? -1 : 0;
}

/* Packs, writes or hands over what has gathered. */
static int drain(struct sink *s, int flush)
{
	int rc = s->error ? -1 : s->take ? sink_hand_over(s) : s->packer ? sink_pack(s, flush) : write_out(s, buf_view(&s->buf));
	buf_clear(&s->buf);
	return rc;
}

int sink_flush(struct sink *s)
{
	return drain(s, Z_NO_FLUSH);
}

int sink_finish(struct sink *s)
{
	int rc = drain(s, Z_FINISH);
	if (s->packer) {
		mem_undo_end(&s->packer->undo);
		deflateEnd(&s->packer->z);
	}
	mem_free(s->packer);
	s->packer = NULL;
	buf_release(&s->buf);
	return rc;
}
