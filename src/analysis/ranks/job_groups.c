#include "analysis/ranks/job_groups.h"

#include "base/mem.h"

enum {
	JOB_GROUPS_WORD = 16,      /* longer words say nothing */
	JOB_GROUPS_SHARE = 4,      /* ops tell where those of one kind ask for at least one in so many of the group's collectives, and none is of another kind */
	JOB_GROUPS_LAYOUTS = 3,    /* of more layouts than this nothing is guessed */
	JOB_GROUPS_COPY = 1 << COMM_ALL_GATHER | 1 << COMM_REDUCE_SCATTER,
	JOB_GROUPS_PAIRS = 1 << COMM_SEND | 1 << COMM_RECV | 1 << COMM_SEND_RECV,
};

static const char *const job_split_names[JOB_N_SPLITS] = {
#define JOB_SPLIT_NAME_(id, name) [JOB_SPLIT_##id] = name,
	JOB_SPLITS(JOB_SPLIT_NAME_)
};

static const char *const job_untold_words[JOB_UNTOLDS] = {
	[JOB_UNTOLD_ALONE] = "they have one rank each",
	[JOB_UNTOLD_RANKS] = "which ranks they have was not recorded",
	[JOB_UNTOLD_ALL] = "a group of all ranks may be of any kind, and neither a description nor the ops that use it tell",
	[JOB_UNTOLD_UNEVEN] = "their ranks are not evenly spaced",
	[JOB_UNTOLD_SHARDS] = "tensor and data parallelism, and data parallelism in shards and replicas, look alike",
	[JOB_UNTOLD_LAYOUT] = "neither descriptions nor ops tell, and the groups of the job may be laid out in several ways",
};

static const char *const job_told_words[] = {[JOB_TOLD_NOT] = "", [JOB_TOLD_SAID] = "said", [JOB_TOLD_BY_OPS] = "ops", [JOB_TOLD_BY_RANKS] = "ranks (guess)"};

const char *job_untold_text(enum job_untold u) { return job_untold_words[u]; }
const char *job_told_text(enum job_told t) { return job_told_words[t]; }

void job_put_split(unsigned split, struct buf *b)
{
	bool first = true;
	for (unsigned i = 0; i < JOB_N_SPLITS; i++) {
		if (!(split & 1u << i))
			continue;
		buf_printf(b, "%s%s", first ? "" : "+", job_split_names[i]);
		first = false;
	}
}

struct str job_group_name(const struct job_group *g)
{
	return g->about.n && !str_eqc(g->about, "undefined") ? g->about : g->name;
}

void job_put_group(const struct job_group *g, struct buf *b)
{
	struct str name = job_group_name(g);
	bool row = g->member && g->member[g->n_members - 1] - g->member[0] == (int64_t)g->n_members - 1;
	if (name.n)
		buf_printf(b, STR_FMT " (", STR_ARG(name));
	else if (g->id.n)
		buf_printf(b, "communicator " STR_FMT " (", STR_ARG(g->id));
	if (!g->member && g->n_members > g->n_ranks)
		buf_printf(b, "%u of %u ranks", g->n_ranks, g->n_members);
	else if (!g->member)
		buf_printf(b, "%u rank%s", g->n_ranks, g->n_ranks == 1 ? "" : "s");
	else if (row && g->n_members > 1)
		buf_printf(b, "ranks %lld-%lld", (long long)g->member[0], (long long)g->member[g->n_members - 1]);
	else
		for (uint32_t i = 0; i < g->n_members; i++)
			buf_printf(b, "%s%lld", i ? ", " : g->n_members == 1 ? "rank " : "ranks ", (long long)g->member[i]);
	if (name.n || g->id.n)
		buf_cstr(b, ")");
}

static unsigned job_split_of_word(struct str word)
{
	static const struct { const char *word; enum job_split split; } words[] = {
#define GROUP_WORD(text, split_) {text, JOB_SPLIT_##split_},
#define GROUP_OP(part, split_, source)
#include "analysis/ranks/group_kinds.def"
#undef GROUP_WORD
#undef GROUP_OP
	};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (str_eqc(word, words[i].word))
			return 1u << words[i].split;
	return 0;
}

/* The next word of letters and digits in lower case, in `text`; of a longer one the beginning. False: there is none. */
static bool job_groups_next_word(struct str *rest, char *text, struct str *word)
{
	size_t n = 0;
	while (rest->n && !((rest->p[0] | 32) >= 'a' && (rest->p[0] | 32) <= 'z') && !(rest->p[0] >= '0' && rest->p[0] <= '9'))
		*rest = (struct str){rest->p + 1, rest->n - 1};
	for (; rest->n; *rest = (struct str){rest->p + 1, rest->n - 1}) {
		char c = rest->p[0];
		bool letter = (c | 32) >= 'a' && (c | 32) <= 'z', digit = c >= '0' && c <= '9';
		if (!letter && !digit)
			break;
		if (n < JOB_GROUPS_WORD)
			text[n++] = letter ? (char)(c | 32) : c;
	}
	*word = (struct str){text, n};
	return n > 0;
}

/* "expert" is of experts, but in "expert data parallel" and "data modulo expert", which are the ranks that hold the same experts, and in "expert tensor parallel". */
unsigned job_split_said(struct str said)
{
	char text[JOB_GROUPS_WORD];
	struct str word;
	unsigned split = 0;
	bool expert = false, model = false, modulo = false, alone = true, dropped = false;
	for (struct str rest = said; job_groups_next_word(&rest, text, &word);) {
		unsigned one = job_split_of_word(word);
		bool is_expert = one == 1u << JOB_SPLIT_EXPERT;
		if (expert && (one & (1u << JOB_SPLIT_DATA | 1u << JOB_SPLIT_TENSOR))) {
			split &= ~(1u << JOB_SPLIT_EXPERT); /* the word before it told which data, which tensors */
			dropped = true;
		}
		if (str_eqc(word, "model")) {
			split |= dropped ? 1u << JOB_SPLIT_EXPERT : 0; /* "expert tensor and model parallel": both */
			model = true;
		}
		split |= modulo ? 0 : one;
		modulo = str_eqc(word, "modulo") || str_eqc(word, "mod") || str_eqc(word, "in");
		alone &= !one;
		expert = is_expert;
	}
	/* Megatron's "model parallel group": ranks that hold one copy of the model. */
	return model && alone && str_has_nocase(said, STR("parallel")) ? 1u << JOB_SPLIT_TENSOR | 1u << JOB_SPLIT_PIPELINE : split;
}

unsigned job_split_of_op(struct str op)
{
	static const struct { const char *part; enum job_split split; } parts[] = {
#define GROUP_WORD(text, split_)
#define GROUP_OP(part, split_, source) {part, JOB_SPLIT_##split_},
#include "analysis/ranks/group_kinds.def"
#undef GROUP_WORD
#undef GROUP_OP
	};
	for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
		if (str_has(op, str_from(parts[i].part)))
			return 1u << parts[i].split;
	return 0;
}

/* What is known of a group for a guess. */
struct job_groups_facts {
	uint64_t calls, of_split[JOB_N_SPLITS];
	unsigned kinds;          /* of its collectives, as bits */
	bool uneven;             /* all-to-alls of unequal parts */
	int64_t stride;          /* between its ranks; 0 = not even */
};

/* A way in which ranks are together: groups of as many ranks, as far apart. */
struct job_groups_layout {
	int64_t stride;
	uint32_t n_members;
	unsigned kinds;
};

struct job_groups_work {
	struct job *j;
	struct job_groups_facts *of;
	struct job_groups_layout layout[JOB_GROUPS_LAYOUTS + 1]; /* of groups that are not known yet, by stride */
	unsigned n;
};

static int64_t job_groups_stride(const struct job_group *g)
{
	if (!g->member || g->n_members < 2)
		return 0;
	int64_t stride = g->member[1] - g->member[0];
	for (uint32_t i = 2; i < g->n_members; i++)
		if (g->member[i] - g->member[i - 1] != stride)
			return 0;
	return stride;
}

/* By rank and op: what the op tells. */
static uint8_t *job_groups_of_ops(const struct rank *r)
{
	uint8_t *split = NEW_ARRAY(r->texts.n, uint8_t);
	for (uint32_t i = 0; i < r->texts.n; i++)
		split[i] = (uint8_t)job_split_of_op(intern_get(&r->texts, i));
	return split;
}

static void job_groups_count(struct job_groups_work *w)
{
	struct job *j = w->j;
	uint8_t **op = NEW_ARRAY(j->n, uint8_t *);
	for (uint32_t r = 0; r < j->n; r++)
		op[r] = job_groups_of_ops(j->rank[r]);
	for (uint32_t i = 0; i < j->n_instances; i++) {
		const struct job_instance *x = &j->instance[i];
		struct job_groups_facts *f = &w->of[x->group];
		int64_t least = INT64_MAX, most = -1;
		f->kinds |= x->paired ? 1u << COMM_SEND | 1u << COMM_RECV : 1u << x->kind;
		for (uint32_t k = 0; k < x->n; k++) {
			const struct rank_call *c = &j->rank[x->part[k].rank]->call[x->part[k].call];
			unsigned split = op[x->part[k].rank][c->op];
			f->calls++;
			for (unsigned s = 0; s < JOB_N_SPLITS; s++)
				f->of_split[s] += split >> s & 1;
			least = c->bytes < least ? c->bytes : least;
			most = c->bytes > most ? c->bytes : most;
		}
		f->uneven |= x->kind == COMM_ALL_TO_ALL && x->n > 1 && least >= 0 && least != most;
	}
	for (uint32_t g = 0; g < j->n_groups; g++)
		w->of[g].stride = job_groups_stride(&j->group[g]);
	for (uint32_t r = 0; r < j->n; r++)
		mem_free(op[r]);
	mem_free(op);
}

static void job_groups_set(struct job_group *g, unsigned split, enum job_told told)
{
	g->split = (uint8_t)split;
	g->told = (uint8_t)(split ? told : JOB_TOLD_NOT);
}

static void job_groups_tell_by_ops(struct job_group *g, const struct job_groups_facts *f)
{
	unsigned split = 0, kinds = 0;
	for (unsigned s = 0; s < JOB_N_SPLITS; s++) {
		kinds += f->of_split[s] > 0;
		split |= f->of_split[s] * JOB_GROUPS_SHARE >= f->calls && f->calls ? 1u << s : 0;
	}
	if (kinds == 1)
		job_groups_set(g, split, JOB_TOLD_BY_OPS);
}

static bool job_groups_is_all(const struct job_groups_work *w, const struct job_group *g)
{
	return g->n_members == w->j->world;
}

/* Whether groups of this layout, side by side, are the job. */
static bool job_groups_tiles(const struct job_groups_work *w, const struct job_group *g, int64_t stride)
{
	return stride > 0 && g->n_members <= w->j->world / stride && w->j->world % (stride * g->n_members) == 0 && g->member[0] % (stride * g->n_members) < stride;
}

static void job_groups_guess_pairs(struct job_groups_work *w, struct job_group *g, const struct job_groups_facts *f)
{
	bool pairs = f->kinds && !(f->kinds & ~(unsigned)JOB_GROUPS_PAIRS) && (f->kinds & (1u << COMM_SEND | 1u << COMM_RECV));
	if (pairs && job_groups_tiles(w, g, f->stride) && f->stride > 1 && f->stride * g->n_members == w->j->world)
		job_groups_set(g, 1u << JOB_SPLIT_PIPELINE, JOB_TOLD_BY_RANKS);
	else if (f->uneven && !job_groups_is_all(w, g))
		job_groups_set(g, 1u << JOB_SPLIT_EXPERT, JOB_TOLD_BY_RANKS);
}

/* Notes the layout of a group of which nothing is known yet, and why it may stay so. */
static void job_groups_add_layout(struct job_groups_work *w, struct job_group *g, const struct job_groups_facts *f)
{
	g->untold = g->alone || g->n_members == 1 ? JOB_UNTOLD_ALONE : job_groups_is_all(w, g) ? JOB_UNTOLD_ALL : !g->member ? JOB_UNTOLD_RANKS
	            : !job_groups_tiles(w, g, f->stride) ? JOB_UNTOLD_UNEVEN : JOB_UNTOLD_LAYOUT;
	if (g->untold != JOB_UNTOLD_LAYOUT)
		return;
	unsigned at = 0;
	while (at < w->n && !(w->layout[at].stride == f->stride && w->layout[at].n_members == g->n_members))
		at++;
	if (at == w->n && w->n > JOB_GROUPS_LAYOUTS)
		return;
	w->n += at == w->n;
	w->layout[at].stride = f->stride;
	w->layout[at].n_members = g->n_members;
	w->layout[at].kinds |= f->kinds;
}

/* Of two layouts: neighbours, and ranks as far apart as there are neighbours. */
static void job_groups_guess_layouts(struct job_groups_work *w)
{
	const struct job_groups_layout *near = &w->layout[0], *far = &w->layout[1];
	const unsigned sums = 1u << COMM_ALL_REDUCE | 1u << COMM_REDUCE_SCATTER;
	if (w->n != 2)
		return;
	if (near->stride > far->stride) {
		near = &w->layout[1];
		far = &w->layout[0];
	}
	if (near->stride != 1 || far->stride != near->n_members || !(near->kinds & sums) || !(far->kinds & sums))
		return;
	bool shards = !(near->kinds & 1u << COMM_ALL_REDUCE) && !(far->kinds & JOB_GROUPS_COPY);
	for (uint32_t i = 0; i < w->j->n_groups; i++) {
		struct job_group *g = &w->j->group[i];
		if (g->split || g->untold != JOB_UNTOLD_LAYOUT)
			continue;
		if (shards)
			g->untold = JOB_UNTOLD_SHARDS;
		else
			job_groups_set(g, 1u << (w->of[i].stride == 1 ? JOB_SPLIT_TENSOR : JOB_SPLIT_DATA), JOB_TOLD_BY_RANKS);
	}
}

void job_tell_groups(struct job *j)
{
	struct job_groups_work w = {.j = j, .of = NEW_ARRAY(j->n_groups + 1, struct job_groups_facts)};
	job_groups_count(&w);
	for (uint32_t i = 0; i < j->n_groups; i++) {
		struct job_group *g = &j->group[i];
		job_groups_set(g, job_split_said(g->about) ?: job_split_said(g->name), JOB_TOLD_SAID);
		bool known = g->member || g->name.n; /* else these are collectives of one stream, of one group or of several */
		if (!g->split && known)
			job_groups_tell_by_ops(g, &w.of[i]);
		if (!g->split && g->member)
			job_groups_guess_pairs(&w, g, &w.of[i]);
		if (!g->split)
			job_groups_add_layout(&w, g, &w.of[i]);
	}
	job_groups_guess_layouts(&w);
	mem_free(w.of);
}
