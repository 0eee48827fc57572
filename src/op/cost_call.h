/* What the parts of the cost model share while they compute the cost of one call; used by src/op, and by a wing that has rules of its own. */
#ifndef OPSCOPE_OP_COST_CALL_H
#define OPSCOPE_OP_COST_CALL_H

#include "op/expr.h"
#include "op/op_args.h"

struct cost_call {
	const struct op_facts *facts;
	struct op_args args;
	struct str name;          /* the op that the rules know: "aten::add" also for "torch.Tensor.__iadd__" and "aten::add_" */
	const struct cost_rules *rules;
	enum cost_direction direction;
	const struct user_rules *user; /* NULL = none */
	struct arena *arena;
	struct cost *out;
	struct expr_scope scope;  /* letters that the pattern bound */
	uint64_t operands;        /* bit i: the pattern names argument i and it is a tensor or a list of them */
	char why_flops[EXPR_WHY], why_bytes[EXPR_WHY];
};

/* One row of rules.def: expressions, or a function where a row cannot say it. */
struct rule {
	const char *names, *pattern, *flops, *read, *written;
	enum op_class class;
	int parts;
	void (*code)(struct cost_call *c); /* sets *c->out and the reasons */
};

/* Neither FLOPs nor bytes can be known, and why. */
void cost_unknown(struct cost_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cost_bytes_unknown(struct cost_call *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* a * b or a + b, COST_UNKNOWN when it does not fit or one of them is COST_UNKNOWN. No value is negative otherwise. */
int64_t cost_mul(int64_t a, int64_t b);
int64_t cost_add(int64_t a, int64_t b);
/* Bytes of n elements; COST_UNKNOWN when the type is, or n is. */
int64_t cost_bytes_of(int64_t n, enum dtype t);

/* Sets bytes_read, bytes_written and bytes; either may be COST_UNKNOWN, which needs a reason: `why`. */
void cost_set_bytes(struct cost_call *c, int64_t read, int64_t written, const char *why);
/* Sets flops, with a reason for what does not fit. */
void cost_set_flops(struct cost_call *c, int64_t flops);

/* C[b][m][n] = A[b][m][k] B[b][k][n]: dimensions, FLOPs, Tensor Core eligibility and parameters, for operands of type t. */
void cost_set_gemm(struct cost_call *c, int64_t b, int64_t m, int64_t n, int64_t k, enum dtype t);
/* The backward of a GEMM whose forward is in *c->out: two products of the same size. */
void cost_double(struct cost_call *c);
enum tri cost_tc_eligible(enum dtype t);
/* The factor for types whose multiply-adds are several real ones: 4 for complex. */
int64_t cost_complex_factor(enum dtype t);

/* Rules by name: slots by its hash, a power of two of them. {0} = no rules. */
struct rule_index {
	struct rule_slot {
		struct str name;
		const struct rule *rule;
	} *slot;
	uint32_t mask;
};
/* Slots that n rows want, which are then entered; of rows with the same name the first one wins. */
size_t rule_index_slots(const struct rule *row, size_t n);
void rule_index_enter(struct rule_index *x, const struct rule *row, size_t n);

/* The rows of rules.def, or those that go before them, and where each name is among them. */
struct rule_set {
	struct rule_rows {
		const struct rule *row;
		size_t n;
	} of[COST_DIRECTIONS];
	const struct rule_index *index; /* of each direction; NULL until the first look-up. Read and set by rules.c alone, as threads share it */
};

/* A file in the form of rules.def as elements of an array of struct rule: RULE, CODE, GRAD and GRAD_CODE each stand for one of the first two, or for none. */
#define RULE_OF_EXPRESSIONS(class, names, pattern, flops, read, written, parts) {names, pattern, flops, read, written, OP_##class, parts, NULL},
#define RULE_OF_CODE(class, names, code) {names, NULL, NULL, NULL, NULL, OP_##class, 1, code},
#define RULE_OF_NOTHING(...)
#define RULE_ROWS(list) {list, sizeof(list) / sizeof(list[0])}

/* The rule for a name, the user's (NULL = none) before others of that name; NULL = none. */
const struct rule *rule_find(struct str name, const struct cost_rules *rules, enum cost_direction d, const struct user_rules *user);
/* Evaluates a rule that has expressions. */
void rule_run(const struct rule *r, struct cost_call *c);
/* The functions and constants of the expressions (see rules.def). */
int rule_function(void *call, struct str name, const int64_t *a, unsigned n, int64_t *v, char why[EXPR_WHY]);
/* Binds operands to a pattern that is sound; -1 with the reason. */
int rule_match(struct cost_call *c, const char *pattern, char why[EXPR_WHY]);
/* For rows that come from outside: whether a pattern is sound, with the letters that it binds (bit i: 'a' + i), and whether there is
 * a function of that name and number of arguments. -1 with the reason. */
int rule_pattern_check(const char *pattern, uint32_t *bound, char why[EXPR_WHY]);
int rule_function_check(struct str name, unsigned n, char why[EXPR_WHY]);
/* The type that arithmetic of the operands results in. */
enum dtype rule_result_type(const struct cost_call *c);

/* A marker's name and arguments become those of the op that it stands for; false when it is no marker that is known. */
bool marker_to_op(struct cost_call *c);

/* The arguments of convolutions and attention as text, "[2,3]fp32;[3]fp32" for all others. */
struct str cost_operands_text(const struct cost_call *c);

#define COST_CODE(name) void name(struct cost_call *c);
#include "op/cost_code.def"
#undef COST_CODE

#endif
