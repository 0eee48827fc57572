/* What descriptions and names of process groups, and the ops that use them, say of their kind (analysis/ranks/job_groups.h). */
#include "test.h"

#include "analysis/ranks/job_groups.h"

static void check(unsigned got, const char *of, const char *want)
{
	struct buf b = {0};
	job_put_split(got, &b);
	if (!str_eqc(buf_view(&b), want))
		fail_msg("%s: " STR_FMT " where %s was expected", of, STR_ARG(buf_view(&b)), want);
	buf_release(&b);
}

static void test_said(void **state)
{
	static const struct { const char *text, *want; } rows[] = {
		/* Megatron-LM */
		{"TENSOR_MODEL_PARALLEL_GROUP", "TP"}, {"PIPELINE_MODEL_PARALLEL_GROUP", "PP"}, {"DATA_PARALLEL_GROUP", "DP"}, {"CONTEXT_PARALLEL_GROUP", "CP"},
		{"DATA_PARALLEL_GROUP_WITH_CP", "DP+CP"}, {"EXPERT_MODEL_PARALLEL_GROUP", "EP"}, {"EXPERT_TENSOR_PARALLEL_GROUP", "TP"}, {"EXPERT_DATA_PARALLEL_GROUP", "DP"},
		{"EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP", "TP+EP"}, {"MODEL_PARALLEL_GROUP", "TP+PP"}, {"TENSOR_AND_DATA_PARALLEL_GROUP", "DP+TP"},
		{"DATA_MODULO_EXPERT_PARALLEL_GROUP", "DP"}, {"TENSOR_AND_CONTEXT_PARALLEL_GROUP", "TP+CP"}, {"EMBEDDING_GROUP", ""}, {"POSITION_EMBEDDING_GROUP", ""},
		/* torch's device meshes, torchtitan */
		{"mesh_dp", "DP"}, {"mesh_tp", "TP"}, {"mesh_pp", "PP"}, {"mesh_dp_shard", "DP"}, {"mesh_dp_replicate", "DP"}, {"mesh_dp_shard_cp", "DP+CP"},
		{"mesh_dp_shard_mod_ep", "DP"}, {"mesh_ep", "EP"}, {"mesh_default", ""}, {"mesh_dim_0", ""},
		/* vLLM, others */
		{"tp:0", "TP"}, {"ep", "EP"}, {"default_pg", ""}, {"undefined", ""}, {"0", ""}, {"", ""}, {"stp", ""}, {"adapt", ""}, {"model", ""},
		{"a_word_that_is_longer_than_any_that_is_known_tp", "TP"}, {"datadatadatadatadata", ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		check(job_split_said(str_from(rows[i].text)), rows[i].text, rows[i].want);
}

static void test_ops(void **state)
{
	static const struct { const char *op, *want; } rows[] = {
		{"_ReduceFromModelParallelRegion", "TP"}, {"_VocabParallelCrossEntropy", "TP"}, {"LinearWithGradAccumulationAndAsyncCommunicationBackward", "TP"},
		{"FSDP::all_gather (layers.0)", "DP"}, {"FullyShardedDataParallel._pre_forward_unshard", "DP"}, {"DistributedDataParallel.forward", ""}, {"FullyShardedDataParallel.forward", ""},
		{"autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", "DP"}, {"AttnFuncWithCPAndKVP2PBackward", "CP"}, {"_SeqAllToAll", "CP"},
		{"aten::mm", ""}, {"ProfilerStep#3", ""}, {"", ""},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		check(job_split_of_op(str_from(rows[i].op)), rows[i].op, rows[i].want);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(test_said), cmocka_unit_test(test_ops)};
	return RUN_TESTS(tests);
}
