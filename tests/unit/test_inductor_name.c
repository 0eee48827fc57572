/* Names of kernels that Inductor generated: kind, number, signature, and the ops that they name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/buf.h"
#include "op/inductor_name.h"

static bool is_word(const void *of, struct str word) { return str_has_word(of, word); }

static const char words[] = "_to_copy add cat embedding gelu gelu_backward index index_select layer_norm mul native_layer_norm native_layer_norm_backward select t tanh view";

static void same_ops(const char *name, const char *want, bool ambiguous)
{
	struct inductor_name n;
	struct inductor_op op[INDUCTOR_OPS_MAX];
	bool is_ambiguous;
	struct buf b = {0};
	assert_true(inductor_name_parse(str_from(name), &n));
	unsigned k = inductor_ops(n.ops, is_word, words, op, &is_ambiguous);
	for (unsigned i = 0; i < k; i++)
		buf_printf(&b, "%s" STR_FMT "%s", i ? " " : "", STR_ARG(op[i].name), op[i].known ? "" : "?");
	buf_char(&b, '\0');
	assert_string_equal(buf_view(&b).p, want);
	assert_int_equal(is_ambiguous, ambiguous);
	buf_release(&b);
}

static void test_kinds(void **state)
{
	static const struct { const char *text, *name; enum inductor_kind kind; } is[] = {
		{"triton_poi_fused_add_0", "triton_poi_fused_add_0", INDUCTOR_POINTWISE},
		{"triton_per_fused_layer_norm_tanh_0_0d1d2d3d4d", "triton_per_fused_layer_norm_tanh_0", INDUCTOR_PERSISTENT},
		{"triton_red_fused_sum_3", "triton_red_fused_sum_3", INDUCTOR_REDUCTION},
		{"triton_tem_fused_mm_7", "triton_tem_fused_mm_7", INDUCTOR_TEMPLATE},
		{"triton_fused_add_0", "triton_fused_add_0", INDUCTOR_UNKNOWN},
		{"triton__0d1d2de", "triton_", INDUCTOR_UNKNOWN},
	};
	static const char *const no[] = {"", "triton", "triton_mm", "_triton_poi_fused_add_0", "triton_my_kernel", "void gemm()"};
	struct inductor_name n;
	for (size_t i = 0; i < sizeof is / sizeof is[0]; i++) {
		assert_true(inductor_name_parse(str_from(is[i].text), &n));
		assert_int_equal(n.kind, is[i].kind);
		assert_true(str_eqc(n.name, is[i].name));
	}
	for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
		assert_false(inductor_name_parse(str_from(no[i]), &n));
}

static void test_ops(void **state)
{
	same_ops("triton_poi_fused_0", "", false);
	same_ops("triton_poi_fused_add_mul_tanh_0", "add mul tanh", false);
	same_ops("triton_per_fused__to_copy_add_embedding_native_layer_norm_native_layer_norm_backward_view_17",
	         "_to_copy add embedding native_layer_norm native_layer_norm_backward view", false);
	same_ops("triton_poi_fused_gelu_gelu_backward_view_6", "gelu gelu_backward view", false);
	same_ops("triton_poi_fused__to_copy_t_16", "_to_copy t", false);
	same_ops("triton_per_fused_Linear_layer_norm_tanh_view_0_0d1d2d3d4d", "Linear? layer_norm tanh view", false);
	same_ops("triton_poi_fused_add_moe_forward_0", "add moe_forward?", false);
	same_ops("triton_poi_fused_index_select_0", "index_select", true);
}

/* Whatever is behind the prefix, no byte is lost. */
static void test_hostile(void **state)
{
	static const char *const names[] = {"triton_poi_fused__", "triton_poi_fused____0", "triton_poi_fused_add__0", "triton_poi_", "triton_poi_fused", "triton__", "triton_0d",
	                                    "triton_poi_fused_a_b_c_d_e_f_g_h_i_j_k_l_m_n_o_p_q_r_s_t_u_v_w_x_y_z_a_b_c_d_e_f_g_h_i_j_k_l_m_n_o_p_q_r_s_t_u_v_w_x_y_z_a_b_c_d_e_f_g_h_i_j_k_l_m_n_o_1"};
	struct inductor_name n;
	struct inductor_op op[INDUCTOR_OPS_MAX];
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		bool ambiguous;
		if (!inductor_name_parse(str_from(names[i]), &n))
			continue;
		size_t bytes = 0;
		unsigned k = inductor_ops(n.ops, is_word, words, op, &ambiguous);
		for (unsigned j = 0; j < k; j++)
			bytes += op[j].name.n + (j > 0);
		assert_int_equal(bytes, n.ops.n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds), cmocka_unit_test(test_ops), cmocka_unit_test(test_hostile)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
