/* A training loop that says what it does: opscope/trace.h. Compiles as C and as C++.
 *
 *   cc -I include docs/examples/trace.c -o trace -ldl && opscope record -o run -- ./trace && opscope report overview run */
#include <opscope/trace.h>

#include <stdio.h>

static float weight[64][64];

/* Ops tell their shapes as torch.profiler does, so that FLOPs and bytes are counted. */
static float multiply(const float *in, float *out, int64_t sequence)
{
	OPSCOPE_OP("aten::mm", sequence);
	opscope_arg_json("Input Dims", "[[1, 64], [64, 64]]");
	opscope_arg_json("Input type", "[\"float\", \"float\"]");
	float sum = 0;
	for (int i = 0; i < 64; i++) {
		out[i] = 0;
		for (int k = 0; k < 64; k++)
			out[i] += in[k] * weight[k][i];
		sum += out[i];
	}
	return sum;
}

static void load(float *batch, int step)
{
	OPSCOPE_RANGE("load batch");
	for (int i = 0; i < 64; i++)
		batch[i] = (float)((i * 7 + step) % 13);
}

int main(void)
{
	float batch[64], out[64], loss = 0;
	opscope_domain_t library = opscope_domain("my library");
	opscope_thread_name("trainer");
	opscope_memory(weight, (int64_t)sizeof weight, (int64_t)sizeof weight, (int64_t)sizeof weight, 0, -1);
	for (int step = 0; step < 4; step++) {
		opscope_step(step);
		load(batch, step);
		opscope_push("forward");
		loss = multiply(batch, out, step);
		opscope_pop();
		opscope_domain_push(library, "update");
		for (int i = 0; i < 64; i++)
			weight[i][i] += 0.01f * out[i];
		opscope_domain_pop(library);
		opscope_counter_f64("loss", NULL, (double)loss);
		opscope_counter_i64("samples", "samples", 64 * (step + 1));
	}
	opscope_mark("trained");
	uint64_t saving = opscope_start("save");
	printf("%g\n", (double)loss);
	opscope_end(saving);
	return 0;
}
