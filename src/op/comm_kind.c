#include "op/comm_kind.h"

/* The first row of which the name has the word decides, whatever stands elsewhere in the name: "AllReduce_RSxLDMC" is an all-reduce. '_' and case aside. */
static const struct comm_word {
	const char *word;
	enum comm_kind kind;
} comm_words[] = {
	/* NCCL, RCCL, MSCCL, c10d, torch's symmetric memory, vLLM, SGLang, FlashInfer, TensorRT-LLM. */
	{"reducescatter", COMM_REDUCE_SCATTER}, {"allreduce", COMM_ALL_REDUCE}, {"crossdevicereduce", COMM_ALL_REDUCE}, {"allgather", COMM_ALL_GATHER},
	{"alltoall", COMM_ALL_TO_ALL}, {"moea2adispatch", COMM_DISPATCH}, {"moea2acombine", COMM_COMBINE},
	/* Transformer Engine's user buffers. */
	{"gpurrrs", COMM_REDUCE_SCATTER}, {"gpurwrs", COMM_REDUCE_SCATTER}, {"gpumcrs", COMM_REDUCE_SCATTER}, {"gpurrag", COMM_ALL_GATHER}, {"gpurwag", COMM_ALL_GATHER},
	{"gpumcag", COMM_ALL_GATHER}, {"suminplacegpu", COMM_ALL_REDUCE}, {"pushsend", COMM_SEND}, {"pushrecv", COMM_RECV}, {"pullrecv", COMM_RECV},
	/* NVSHMEM's collectives on a stream. */
	{"fcollect", COMM_ALL_GATHER}, {"rdxnonstream", COMM_ALL_REDUCE},
	{"barrier", COMM_BARRIER}, {"broadcast", COMM_BROADCAST}, {"gather", COMM_GATHER}, {"scatter", COMM_SCATTER}, {"reduce", COMM_REDUCE},
	{"sendrecv", COMM_SEND_RECV}, {"send", COMM_SEND}, {"recv", COMM_RECV},
	/* DeepEP. */
	{"dispatch", COMM_DISPATCH}, {"combine", COMM_COMBINE},
	/* c10d, where nothing says of what: "allreduce_coalesced" is an all-reduce. */
	{"coalesc", COMM_COALESCED},
};

static const struct comm_kind_facts {
	const char *name;
	bool together;
} comm_kinds[COMM_N_KINDS + 1] = {
#define COMM_KIND_ROW_(id, name, together) [COMM_##id] = {name, together},
	COMM_KINDS(COMM_KIND_ROW_)
	[COMM_UNKNOWN] = {"", false},
};

const char *comm_kind_name(enum comm_kind k) { return comm_kinds[k].name; }
bool comm_kind_ends_together(enum comm_kind k) { return comm_kinds[k].together; }

enum comm_kind comm_kind_of(struct str name)
{
	char plain[128];
	size_t n = 0;
	for (size_t i = 0; i < name.n && n < sizeof plain; i++) {
		char x = name.p[i];
		if (x != '_')
			plain[n++] = x >= 'A' && x <= 'Z' ? (char)(x + 32) : x;
	}
	for (size_t i = 0; i < sizeof comm_words / sizeof *comm_words; i++)
		if (str_has((struct str){plain, n}, str_from(comm_words[i].word)))
			return comm_words[i].kind;
	return COMM_UNKNOWN;
}
