#include "analysis/ranks/rank_pack.h"

#include "base/mem.h"
#include "base/pack.h"
#include "store/build.h"

/* Times lie between -2^62 and 2^62, as in a profile: they can be subtracted. The lengths of a rank's collectives, and of its steps, add up to as much as those of a profile. */
#define RANK_PACK_TIME ((int64_t)1 << 62)
static const int64_t RANK_PACK_SUM = (int64_t)1 << BUILD_SUM_BITS;

#include "analysis/ranks/rank_fields.def"

PACK_TYPE(interval, INTERVAL_FIELDS)
PACK_TYPE(busy, BUSY_FIELDS)
PACK_TYPE(rank_past, RANK_PAST_FIELDS)
PACK_TYPE(rank_group, RANK_GROUP_FIELDS)
PACK_TYPE(rank_call, RANK_CALL_FIELDS)
PACK_TYPE(rank_step, RANK_STEP_FIELDS)
PACK_TYPE(rank_recording, RANK_RECORDING_FIELDS)
PACK_TYPE(rank_task, RANK_TASK_FIELDS)
PACK_TYPE(rank_hang_group, RANK_HANG_GROUP_FIELDS)
PACK_TYPE(rank_hang_call, RANK_HANG_CALL_FIELDS)
PACK_TYPE(rank_hang, RANK_HANG_FIELDS)
PACK_TYPE(rank, RANK_FIELDS)

/* In front: what it is, and which fields follow, in the machine's order: bytes of a machine with another order count as those of another version. */
struct rank_pack_head {
	uint32_t magic, version;
};

static struct rank_pack_head rank_pack_head_of(void)
{
	const uint64_t v = pack_version(&rank_layout);
	return (struct rank_pack_head){0x4f50524b, (uint32_t)(v ^ (v >> 32))};
}

void rank_pack(const struct rank *r, struct buf *out)
{
	const struct rank_pack_head head = rank_pack_head_of();
	buf_put(out, &head, sizeof head);
	pack_put(&rank_layout, r, out);
}

/* ---- what fields must be beside each other ---- */

static bool rank_pack_add(int64_t *sum, int64_t ns)
{
	*sum += ns; /* each below 2^63, and the sum below 2^58 so far */
	return ns >= 0 && *sum >= 0 && *sum <= RANK_PACK_SUM;
}

static bool rank_pack_groups_are_sound(const struct rank *r)
{
	for (uint32_t g = 0; g < r->n_groups; g++) {
		const struct rank_group *x = &r->group[g];
		if (x->n && x->size != (int64_t)x->n)
			return false;
		for (uint32_t i = 1; i < x->n; i++)
			if (x->member[i] <= x->member[i - 1])
				return false;
	}
	return true;
}

static bool rank_pack_steps_are_sound(const struct rank *r)
{
	int64_t sum = 0;
	for (uint32_t s = 0; s < r->n_steps; s++) {
		const struct rank_step *x = &r->step[s];
		int64_t total = x->end_ns - x->start_ns;
		bool sound = rank_pack_add(&sum, total);
		int64_t left = total; /* of the step, which its phases add up to */
		for (unsigned k = 0; k < BUSY_KINDS; k++)
			sound &= x->busy.ns[k] <= total;
		for (unsigned k = 0; k < RANK_N_PHASES && sound; k++)
			sound = (left -= x->phase_ns[k]) >= 0;
		sound &= left == 0;
		if (!sound)
			return false;
	}
	return true;
}

/* The pieces of the call follow those of the one before, lie within it, and are what was exposed of it. */
static bool rank_pack_pieces_are_sound(const struct rank *r, const struct rank_call *c, uint32_t first)
{
	int64_t exposed = 0;
	if (c->piece != first || c->n_pieces > r->n_pieces - first)
		return false;
	for (uint32_t i = first; i < first + c->n_pieces; i++) {
		const struct interval *x = &r->piece[i];
		if (x->start >= x->end || x->start < c->start_ns || x->end > c->end_ns || (i && x->start < r->piece[i - 1].end))
			return false;
		exposed += x->end - x->start;
	}
	return exposed == c->exposed_ns;
}

/* What the call sends to each rank of its group is there. */
static bool rank_pack_parts_are_sound(const struct rank *r, const struct rank_call *c)
{
	return !c->sent || c->sent == RANK_EQUAL_PARTS || (c->sent <= r->n_sent && r->group[c->group].n <= r->n_sent - (c->sent - 1));
}

static bool rank_pack_calls_are_sound(const struct rank *r)
{
	int64_t sum = 0;
	uint32_t piece = 0;
	for (uint32_t i = 0; i < r->n_calls; i++) {
		const struct rank_call *c = &r->call[i];
		if (!rank_pack_add(&sum, c->end_ns - c->start_ns) || (i && c->start_ns < r->call[i - 1].start_ns) || !rank_pack_pieces_are_sound(r, c, piece) ||
		    !rank_pack_parts_are_sound(r, c))
			return false;
		piece += c->n_pieces;
	}
	return piece == r->n_pieces;
}

/* Of a worker, by step, then by start; each in a step that is there; their lengths can be added up. */
static bool rank_pack_tasks_are_sound(const struct rank *r)
{
	int64_t sum = 0;
	uint32_t step = 0;
	if (r->n_tasks && !r->is_worker)
		return false;
	for (uint32_t i = 0; i < r->n_tasks; i++) {
		while (step < r->n_steps && r->step[step].number < r->task[i].step)
			step++;
		if (step == r->n_steps || r->step[step].number != r->task[i].step)
			return false;
		const struct rank_task *x = &r->task[i], *before = i ? x - 1 : NULL;
		if (!rank_pack_add(&sum, x->end_ns - x->start_ns) || (before && (x->step < before->step || (x->step == before->step && x->start_ns < before->start_ns))))
			return false;
	}
	return true;
}

static const char *rank_pack_what_is_wrong(const struct rank *r)
{
	if (!rank_pack_groups_are_sound(r))
		return "a process group's members";
	if (!rank_pack_steps_are_sound(r))
		return "the time of a step";
	if (!rank_pack_tasks_are_sound(r))
		return "a task";
	return rank_pack_calls_are_sound(r) ? NULL : "the time of a collective";
}

/* ---- reading ---- */

struct rank *rank_unpack(struct str bytes, struct err *e)
{
	const struct rank_pack_head want = rank_pack_head_of();
	struct rank_pack_head head;
	const char *why;
	if (bytes.n < sizeof head || (memcpy(&head, bytes.p, sizeof head), head.magic != want.magic)) {
		err_set(e, ERR_FORMAT, "these bytes are not those of a rank");
		return NULL;
	}
	if (head.version != want.version) {
		err_set(e, ERR_FORMAT, "the rank was written by another version of opscope, which keeps other fields");
		return NULL;
	}
	struct rank *r = NEW(struct rank);
	intern_init(&r->texts);
	if (!pack_take(&rank_layout, (struct str){bytes.p + sizeof head, bytes.n - sizeof head}, &r->arena, r, &why) || (why = rank_pack_what_is_wrong(r))) {
		err_set(e, ERR_FORMAT, "the rank is damaged: %s", why);
		rank_free(r);
		return NULL;
	}
	return r;
}
