/* PyProf's formulas, one or more rows for each class of ops, of both versions; and how it prints numbers and names. Numbers are
 * worked out by hand from the published formulas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "predecessors/pyprof/op/pyprof.h"

#define T(shape, type) "{'name': '', 'type': 'tensor', 'shape': " shape ", 'dtype': '" type "'}"
#define K(key, shape, type) "{'name': '" key "', 'type': 'tensor', 'shape': " shape ", 'dtype': '" type "'}"
#define V(type, value) "{'name': '', 'type': '" type "', 'value': " value "}"
#define KV(key, type, value) "{'name': '" key "', 'type': '" type "', 'value': " value "}"
#define F "torch.nn.functional"
#define ABORTS NULL, NULL, NULL, NULL, 0

static const struct row {
	int rules; /* 3, 2, or 0 = both alike */
	bool backward;
	int sub;
	const char *kernel, *mod, *op, *args;
	const char *params, *flops, *bytes, *out_op;
	char tc;
} rows[] = {
	/* linear: 2mnk; bytes with the size in the wrong place; rows of x as a tuple when there are several leading dimensions */
	{0, false, 0, "volta_sgemm_64x32_sliced1x4_tn", F, "linear", T("(35, 20, 200)", "float32") ", " T("(100, 200)", "float32"),
	 "M=100,N=(35,20),K=200,fp32,", "28000000", "650000", "linear", '0'},
	{3, true, 0, "volta_h884gemm_64x64", F, "linear", T("(8, 16)", "float16") ", " T("(32, 16)", "float16") ", " T("(32,)", "float16"),
	 "M=16,N=8,K=32,fp16,", "8192", "1024", "linear", '1'},
	{3, true, 1, "volta_s1688gemm_x", F, "linear", T("(8, 16)", "float16") ", " T("(32, 16)", "float16") ", " V("NoneType", "None"),
	 "M=16,N=32,K=8,fp16,", "8192", "1024", "linear", '1'},
	{2, true, 1, "volta_s1688gemm_x", F, "linear", T("(8, 16)", "float16") ", " T("(32, 16)", "float16"), "M=16,N=32,K=8,fp16,", "8192",
	 "1024", "linear", '0'},
	{0, true, 2, "splitKreduce_kernel", F, "linear", T("(8, 16)", "float16") ", " T("(32, 16)", "float16"), "X=(8,16),W=(32,16),fp16,", "0",
	 "0", "linear", '0'},
	{0, false, 1, "elementwise_kernel", F, "linear", T("(8, 16)", "float16") ", " T("(32, 16)", "float16") ", " T("(32,)", "float16"),
	 "M=32,N=8,fp16,", "256", "1024", "bias", '-'},
	{3, false, 1, "vectorized_elementwise_kernel", F, "linear", T("(8, 16)", "float16") ", " T("(32, 16)", "float16"), "M=32,N=8,fp16,",
	 "256", "1024", "bias", '-'},
	{2, false, 1, "vectorized_elementwise_kernel", F, "linear", T("(8, 16)", "float16") ", " T("(32, 16)", "float16"), ABORTS},
	{3, false, 0, "cutlass_80_tensorop", F, "linear", T("(8, 16)", "float16") ", " T("(32, 16)", "float16"), "M=32,N=8,K=16,fp16,", "8192",
	 "1024", "linear", '0'},
	{2, false, 0, "cutlass_80_tensorop", F, "linear", T("(8, 16)", "float16") ", " T("(32, 16)", "float16"), ABORTS},
	{0, false, 0, "some_kernel", F, "linear", T("(8, 16)", "float16") ", " T("(32, 16)", "float16"), ABORTS},
	{0, false, 0, "sgemm", F, "linear", T("(8, 16)", "bfloat16") ", " T("(32, 16)", "bfloat16"), ABORTS},
	{0, false, 0, "sgemm", F, "linear", T("(8, 16)", "float32") ", " T("(32, 17)", "float32"), ABORTS},
	/* recurrent cells */
	{0, false, 3, "volta_sgemm_128x64_tn", "LSTMCell", "forward", T("(5, 10)", "float32") ", " T("(5, 20)", "float32"),
	 "gemm=layer,M=80,N=5,K=10,fp32,", "8000", "5000", "forward", '0'},
	{0, false, 1, "volta_sgemm_128x64_tn", "GRUCell", "forward", T("(5, 10)", "float32") ", " T("(5, 20)", "float32"),
	 "gemm=recur,M=60,N=5,K=20,fp32,", "12000", "6400", "forward", '0'},
	{0, false, 2, "elementwise_kernel", "LSTMCell", "forward", T("(5, 10)", "float32") ", " T("(5, 20)", "float32"),
	 "cell=LSTMCell,X=10,H=20,B=5,fp32,", "0", "4400", "forward", '-'},
	{0, true, 0, "volta_sgemm_32x32_sliced1x4_nn", "LSTMCell", "forward", T("(5, 10)", "float32") ", " T("(5, 64)", "float32"),
	 "gemm=recur,M=64,N=5,K=256,fp32,", "163840", "71936", "forward", '0'},
	{0, true, 0, "volta_sgemm_128x64_nt", "LSTMCell", "forward", T("(5, 256)", "float32") ", " T("(5, 64)", "float32"),
	 "gemm=layer,M=256,N=256,K=5,fp32,", "655360", "272384", "forward", '0'},
	{0, true, 0, "volta_sgemm_nt", "LSTMCell", "forward", T("(5, 256)", "float32") ", " T("(5, 64)", "float32"), ABORTS},
	{3, true, 0, "RNNCell_kernel", "RNNCell", "forward", T("(5, 256)", "float32") ", " T("(5, 64)", "float32"),
	 "T=[(5,256),(5,64)],['float32','float32']", "0", "0", "forward", '-'},
	/* convolution: floats, because of the division by the groups */
	{0, false, 0, "volta_scudnn_128x64", F, "conv2d",
	 T("(2, 3, 8, 8)", "float32") ", " T("(4, 3, 3, 3)", "float32") ", " V("NoneType", "None") ", " V("tuple", "(1, 1)") ", " V("tuple", "(1, 1)"),
	 "N=2,C=3,H=8,W=8,K=4,P=8,Q=8,R=3,S=3,ph=1,pw=1,U=1,V=1,dh=1,dw=1,g=1,fp32,", "27648.0", "4016.0", "conv2d", '-'},
	{2, true, 0, "volta_h884cudnn_s884cudnn_x", F, "conv2d",
	 T("(1, 4, 4, 4)", "float16") ", " T("(8, 2, 3, 3)", "float16") ", " KV("padding", "int", "1") ", " KV("groups", "int", "2"),
	 "N=1,C=4,H=4,W=4,K=8,P=4,Q=4,R=3,S=3,ph=1,pw=1,U=1,V=1,dh=1,dw=1,g=2,fp16,", "2304.0", "336.0", "conv2d", '1'},
	{3, true, 0, "volta_s884cudnn_x_s884cudnn_", F, "conv2d",
	 T("(1, 4, 4, 4)", "float16") ", " T("(8, 2, 3, 3)", "float16") ", " KV("padding", "int", "1") ", " KV("groups", "int", "2"),
	 "N=1,C=4,H=4,W=4,K=8,P=4,Q=4,R=3,S=3,ph=1,pw=1,U=1,V=1,dh=1,dw=1,g=2,fp16,", "2304.0", "336.0", "conv2d", '1'},
	{0, false, 0, "spatialDepthwiseConvolutionUpdateOutput", F, "conv2d",
	 T("(1, 4, 4, 4)", "float32") ", " T("(4, 1, 3, 3)", "float32") ", " KV("groups", "int", "4"),
	 "N=1,C=4,H=4,W=4,K=4,P=2,Q=2,R=3,S=3,ph=0,pw=0,U=1,V=1,dh=1,dw=1,g=4,fp32,", "288.0", "464.0", "conv2d", '-'},
	{0, true, 2, "calc_bias_diff", F, "conv2d", T("(2, 3, 8, 8)", "float32") ", " T("(4, 3, 3, 3)", "float32") ", " KV("stride", "int", "2"),
	 "N=2,C=3,H=8,W=8,K=4,P=3,Q=3,R=3,S=3,ph=0,pw=0,U=2,V=2,dh=1,dw=1,g=1,fp32,", "72", "576", "conv2d", '-'},
	{0, false, 0, "nchwToNhwcKernel_scudnn_", F, "conv2d", T("(2, 3, 8, 8)", "float32") ", " T("(4, 3, 3, 3)", "float32"),
	 "N=2,C=3,H=8,W=8,K=4,P=6,Q=6,R=3,S=3,ph=0,pw=0,U=1,V=1,dh=1,dw=1,g=1,fp32,", "0", "0", "conv2d", '-'},
	{0, false, 0, "volta_scudnn_128x64", F, "conv1d",
	 T("(2, 3, 16)", "float32") ", " T("(4, 3, 5)", "float32") ", " V("NoneType", "None") ", " V("tuple", "(2,)") ", " V("tuple", "(2,)"),
	 "N=2,C=3,H=1,W=16,K=4,P=1,Q=8,R=1,S=5,ph=0,pw=2,U=1,V=2,dh=1,dw=1,g=1,fp32,", "1920.0", "880.0", "conv1d", '-'},
	{0, false, 0, "volta_scudnn_128x64", F, "conv2d", T("(2, 3, 8, 8)", "float32") ", " T("(4, 2, 3, 3)", "float32"), ABORTS},
	/* elementwise: every line of the table, forward and backward */
	{3, false, 0, "k", "torch", "neg", T("(2, 3)", "float32"), "[2,3]fp32", "6", "48", "neg", '-'},
	{3, false, 0, "k", "Tensor", "clamp_", T("(2, 3)", "float16") ", " V("int", "0"), "[2,3]fp16;[]int32", "6", "24", "clamp_", '-'},
	{3, false, 0, "k", "torch", "exp", T("(2, 3)", "float64"), "[2,3]fp64", "120", "96", "exp", '-'},
	{3, false, 0, "k", "torch", "sigmoid", T("(4,)", "float32"), "[4]fp32", "80", "32", "sigmoid", '-'},
	{3, false, 0, "k", "torch", "atan2", T("(4,)", "float32") ", " T("(4,)", "float32"), ABORTS},
	{3, false, 0, "k", "Tensor", "__add__", T("(4, 1)", "float32") ", " T("(1, 5)", "float32"), "[4,1]fp32;[1,5]fp32", "20", "116", "__add__",
	 '-'},
	{3, false, 0, "k", "Tensor", "__mul__", T("(10,)", "float16") ", " V("float", "2.0"), "[10]fp16;[]fp32", "10", "44", "__mul__", '-'},
	{3, false, 0, "k", "torch", "eq", T("(10,)", "float32") ", " V("int", "1"), "[10]fp32;[]int32", "10", "54", "eq", '-'},
	{3, true, 0, "k", "torch", "add", T("(10,)", "float32") ", " T("(10,)", "float32") ", " KV("alpha", "int", "2"), "[10]fp32;[10]fp32", "0",
	 "80", "add", '-'},
	{3, true, 0, "k", "torch", "div", T("(10,)", "float32") ", " T("(10,)", "float32"), "[10]fp32;[10]fp32", "10", "120", "div", '-'},
	{3, true, 0, "k", "torch", "fmod", T("(10,)", "float32") ", " T("(10,)", "float32"), ABORTS},
	{3, false, 0, "k", "torch", "add", T("(10,)", "float32") ", " V("int", "-20") ", " T("(10,)", "float32"), ABORTS},
	{3, false, 0, "k", "torch", "pow", T("(10,)", "float32") ", " V("int", "2"), "[10]fp32;[]int32", "200", "84", "pow", '-'},
	{3, false, 0, "k", "Tensor", "addcmul_", T("(10,)", "float32") ", " V("float", "0.1") ", " T("(10,)", "float32") ", " T("(1,)", "float32"),
	 "[10]fp32;[]fp32;[10]fp32;[1]fp32", "30", "124", "addcmul_", '-'},
	{3, false, 0, "k", "torch", "lerp", T("(10,)", "float32") ", " T("(10,)", "float32") ", " T("(10,)", "float32"), ABORTS},
	{3, false, 0, "k", "torch", "add", T("(3,)", "float32") ", " T("(4,)", "float32"), ABORTS},
	{2, false, 0, "k", "Tensor", "__mul__", T("(35, 20)", "float32") ", " V("float", "1.5"), "T=[(35,20)],fp32,", "700.0", "5600", "__mul__", '-'},
	{2, false, 0, "k", "Tensor", "add_", T("(3,)", "float32") ", " V("int", "-20") ", " T("(3,)", "float32"), "T=[(3,),(3,)],fp32,", "4.5", "36",
	 "add_", '-'},
	{2, true, 0, "k", "Tensor", "add", T("(3,)", "float32") ", " T("(3,)", "float32"), "T=[(3,),(3,)],fp32,", "3.0", "24", "add", '-'},
	{2, true, 0, "k", "Tensor", "__rmul__", T("(4,)", "float16") ", " T("(4,)", "float16"), "T=[(4,),(4,)],fp16,", "6.0", "24", "__rmul__", '-'},
	{2, true, 0, "k", "Tensor", "mul", T("(4,)", "float16") ", " T("(4,)", "float16"), ABORTS},
	{2, false, 0, "k", "Tensor", "__add__", T("(4, 1)", "float32") ", " T("(1, 5)", "float32"), "T=[(4,1),(1,5)],fp32,", "14.5", "116", "__add__",
	 '-'},
	{2, false, 0, "k", "torch", "addcmul", T("(4,)", "float32") ", " T("(4,)", "float32") ", " T("(4,)", "float32"), "T=[(4,),(4,),(4,)],fp32,",
	 "0", "64", "addcmul", '-'},
	{2, false, 0, "k", "torch", "fmod", T("(4,)", "float32") ", " V("int", "2"), "T=[(4,)],fp32,", "8", "32", "fmod", '-'},
	{2, false, 0, "k", "torch", "tanh", T("(4,)", "float32"), "T=[(4,)],fp32,", "16", "32", "tanh", '-'},
	{2, false, 0, "k", "torch", "acos", T("(4,)", "float32"), "T=[(4,)],fp32,", "80", "32", "acos", '-'},
	{2, false, 0, "k", "torch", "erf", T("(4,)", "float32"), "T=[(4,)],fp32,", "0", "32", "erf", '-'},
	{2, false, 0, "k", "Tensor", "__rmul__", V("float", "2.0"), "T=[(1,)],fp32,", "1.0", "8", "__rmul__", '-'},
	{2, false, 0, "k", "torch", "add", T("(4,)", "float32") ", " T("(4,)", "float16"), ABORTS},
	/* conversions, activations */
	{3, false, 0, "k", "Tensor", "half", T("(10,)", "float32"), "[10]fp32", "0", "60", "half", '-'},
	{2, false, 0, "k", "Tensor", "half", T("(10,)", "float32"), "T=(10,),fp32,fp16,", "0", "60", "half", '-'},
	{3, false, 0, "k", "Tensor", "to", T("(10,)", "bool"), "[10]bool", "0", "20", "to", '-'},
	{2, false, 0, "k", "Tensor", "to", T("(10,)", "bool"), ABORTS},
	{3, false, 0, "k", F, "relu", T("(10,)", "float32"), "[10]fp32", "10", "80", "relu", '-'},
	{2, true, 0, "k", F, "relu", T("(10,)", "float32"), "T=(10,),fp32,", "10", "120", "relu", '-'},
	/* products */
	{0, false, 0, "volta_h884gemm_256", "torch", "addmm",
	 T("(8, 4)", "float16") ", " T("(8, 16)", "float16") ", " T("(16, 4)", "float16") ", " KV("beta", "int", "1"), "M=4,N=8,K=16,fp16,", "1024",
	 "448", "addmm", '1'},
	{3, false, 0, "ampere_fp16_s16816gemm_x", "torch", "mm", T("(8, 16)", "float16") ", " T("(16, 4)", "float16"), "M=4,N=8,K=16,fp16,", "1024",
	 "448", "mm", '1'},
	{2, false, 0, "ampere_fp16_s16816gemm_x", "torch", "mm", T("(8, 16)", "float16") ", " T("(16, 4)", "float16"), "M=4,N=8,K=16,fp16,", "1024",
	 "448", "mm", '0'},
	{2, false, 0, "s", "torch", "addmm",
	 V("int", "1") ", " T("(8, 4)", "float16") ", " T("(8, 16)", "float16") ", " T("(16, 4)", "float16"), "M=4,N=8,K=16,fp16,", "1024", "448", "addmm",
	 '0'},
	{3, false, 0, "s", "torch", "addmm",
	 V("int", "1") ", " T("(8, 4)", "float16") ", " T("(8, 16)", "float16") ", " T("(16, 4)", "float16"), ABORTS},
	{0, false, 0, "s", "torch", "bmm", T("(2, 8, 16)", "float32") ", " T("(2, 16, 4)", "float32"), "B=2,M=4,N=8,K=16,fp32,", "2048", "1792", "bmm",
	 '0'},
	{0, false, 0, "s", "torch", "bmm", T("(2, 8, 16)", "float32") ", " T("(3, 16, 4)", "float32"), ABORTS},
	{0, false, 0, "sgemm", "torch", "matmul", T("(2, 3, 8, 16)", "float32") ", " T("(3, 16, 4)", "float32"),
	 "A=(2,3,8,16),B=(3,16,4),fp32,", "6144", "896", "matmul", '0'},
	{0, false, 0, "gemv2T", "Tensor", "__matmul__", T("(8, 16)", "float32") ", " T("(16,)", "float32"), "A=(8,16),B=(16,),fp32,", "256", "608",
	 "__matmul__", '0'},
	{0, false, 0, "dot_kernel", "torch", "matmul", T("(16,)", "float32") ", " T("(16,)", "float32"), "A=(16,),B=(16,),fp32,", "32", "132", "matmul",
	 '-'},
	{0, false, 0, "elementwise_kernel", "torch", "matmul", T("(2, 8, 16)", "float32") ", " T("(16,)", "float32"), "A=(2,8,16),B=(16,),fp32,", "0",
	 "2048", "matmul", '-'},
	{2, false, 0, "splitKreduce_kernel", "torch", "matmul", T("(8, 16)", "float32") ", " T("(16, 4)", "float32"), "A=(8,16),B=(16,4),fp32,", "0",
	 "1024", "matmul", '-'},
	{3, false, 0, "splitKreduce_kernel", "torch", "matmul", T("(8, 16)", "float32") ", " T("(16, 4)", "float32"), ABORTS},
	/* softmax, losses, norms, reductions */
	{3, false, 0, "k", F, "softmax", T("(4, 5)", "float32") ", " KV("dim", "int", "1"), "[4,5]fp32", "800", "240", "softmax", '-'},
	{2, true, 0, "k", F, "softmax", T("(4, 5)", "float32"), "T=(4,5),fp32,", "0", "400", "softmax", '-'},
	{3, true, 0, "k", F, "log_softmax", T("(4, 5)", "float32"), "[4,5]fp32", "420", "400", "log_softmax", '-'},
	{2, false, 0, "k", "torch", "log_softmax", T("(4, 5)", "float32"), ABORTS},
	{0, false, 0, "k", F, "mse_loss", T("(10,)", "float32") ", " T("(10,)", "float32") ", " KV("reduction", "str", "'mean'"),
	 "T=(10,),fp32,red=mean,", "41", "80", "mse_loss", '-'},
	{0, true, 0, "k", F, "mse_loss", T("(10,)", "float32") ", " T("(10,)", "float32") ", " KV("reduction", "str", "'none'"),
	 "T=(10,),fp32,red=none,", "81", "160", "mse_loss", '-'},
	{3, false, 0, "k", F, "batch_norm", T("(2, 3, 4, 4)", "float16"), "[2,3,4,4]fp16", "768", "768", "batch_norm", '-'},
	{2, true, 0, "k", F, "batch_norm", T("(2, 3, 4, 4)", "float16"), "T=(2,3,4,4),fp16,", "768", "960", "batch_norm", '-'},
	{3, true, 1, "k", F, "batch_norm", T("(2, 3, 4, 4)", "float16"), "[2,3,4,4]fp16", "768", "0", "batch_norm", '-'},
	{0, false, 0, "k", "torch", "sum", T("(10,)", "float32"), "T=(10,),fp32,", "10", "40", "sum", '-'},
	{0, false, 1, "k", "torch", "sum", K("input", "(10,)", "float32"), "T=(10,),fp32,", "10", "0", "sum", '-'},
	{3, false, 0, "k", "torch", "mean", T("(10,)", "float32"), "[10]fp32", "11", "44", "mean", '-'},
	{2, false, 0, "k", "torch", "mean", T("(10,)", "float32"), "T=(10,),fp32,", "11", "40", "mean", '-'},
	{3, false, 1, "k", "torch", "mean", T("(10,)", "float32"), "[10]fp32", "0", "0", "mean", '-'},
	{0, false, 0, "k", "Tensor", "norm", T("(10,)", "float32") ", " V("float", "2.0"), "T=(10,),fp32,", "21", "40", "norm", '-'},
	{0, false, 7, "k", "Tensor", "norm", T("(10,)", "float32") ", " V("float", "2.0"), "T=(10,),fp32,", "0", "0", "norm", '-'},
	{0, false, 0, "k", F, "dropout", T("(10,)", "float16") ", " V("float", "0.5"), "T=(10,),fp16,", "50", "40", "dropout", '-'},
	/* embedding */
	{2, false, 0, "k", F, "embedding", T("(35, 20)", "int64") ", " T("(100, 8)", "float32"), "I=(35,20),int64,E=(100,8),fp32,", "0", "50400",
	 "embedding", '-'},
	{3, true, 0, "k", F, "embedding", T("(35, 20)", "int64") ", " T("(100, 8)", "float32"), "[35,20]int64;[100,8]fp32", "0", "67200",
	 "embedding", '-'},
	{3, true, 1, "k", F, "embedding", T("(35, 20)", "int64") ", " T("(100, 8)", "float32"), "[35,20]int64;[100,8]fp32", "0", "0", "embedding", '-'},
	/* picking and joining */
	{0, false, 0, "k", "torch", "cat", T("(2, 3)", "float32") ", " T("(4, 3)", "float32") ", " V("int", "0"), "T=[(2,3),(4,3)],fp32,", "0", "144",
	 "cat", '-'},
	{0, false, 1, "k", "torch", "cat", T("(2, 3)", "float32") ", " T("(4, 3)", "float32"), "T=[(2,3),(4,3)],fp32,", "0", "0", "cat", '-'},
	{0, false, 0, "k", "torch", "cat", T("(2, 3)", "float32") ", " T("(4, 3)", "float16"), ABORTS},
	{0, false, 0, "k", "Tensor", "reshape", T("(2, 3)", "float32") ", " V("tuple", "(6,)"), "T=(2,3),fp32,", "0", "0", "reshape", '-'},
	{0, false, 0, "k", "torch", "gather", T("(2, 3)", "float32") ", " V("int", "1") ", " T("(2, 1)", "int64") ", " K("out", "(2, 1)", "float32"),
	 "T=(2,3),fp32,", "0", "48", "gather", '-'},
	{0, false, 0, "k", "Tensor", "masked_scatter_", T("(10,)", "float32") ", " T("(10,)", "uint8") ", " T("(10,)", "float32"), "T=(10,),fp32,", "0",
	 "90", "masked_scatter_", '-'},
	{0, false, 0, "k", "Tensor", "masked_scatter_", T("(10,)", "float32") ", " T("(10,)", "bool") ", " T("(10,)", "float32"), ABORTS},
	{0, false, 0, "k", "torch", "nonzero", T("(2, 5)", "uint8"), "T=(2,5),uint8,", "0", "170", "nonzero", '-'},
	{0, false, 0, "k", "torch", "index_select", T("(4, 6)", "float32") ", " V("int", "1") ", " T("(3,)", "int64"), "T=(4,6),D=1,I=3,fp32,", "0", "120",
	 "index_select", '-'},
	{0, false, 0, "k", "torch", "masked_select", T("(4, 6)", "float32") ", " T("(6,)", "uint8"), "T=(4,6),M=(6,),fp32,", "0", "198",
	 "masked_select", '-'},
	/* making and moving */
	{0, false, 0, "k", "torch", "randperm", V("int", "100"), "N=100,", "300", "800", "randperm", '-'},
	{3, false, 0, "k", "torch", "zeros", V("int", "3") ", " V("int", "4"), "[3,4]fp32", "0", "48", "zeros", '-'},
	{3, false, 0, "k", "torch", "ones", V("tuple", "(3, 4)"), "[3,4]fp32", "0", "48", "ones", '-'},
	{2, false, 0, "k", "torch", "ones", V("tuple", "(3, 4)"), "T=[],[]", "0", "0", "ones", '-'},
	{3, false, 0, "k", "Tensor", "zero_", T("(3, 4)", "float16"), "[3,4]fp16", "0", "24", "zero_", '-'},
	{3, false, 0, "k", "Tensor", "fill_", T("(3, 4)", "float16") ", " V("float", "1.0"), "[3,4]fp16", "0", "24", "fill_", '-'},
	{3, false, 0, "k", "torch", "full", V("tuple", "(3, 4)") ", " V("int", "1"), "[3,4]int32", "0", "48", "full", '-'},
	{0, false, 0, "k", "Tensor", "copy_", T("(10,)", "float16") ", " T("(10,)", "float32"), "T=(10,),fp32,fp16,", "0", "60", "copy_", '-'},
	{0, false, 0, "k", "Tensor", "clone", T("(10,)", "float16"), "T=(10,),fp16,", "0", "40", "clone", '-'},
	{0, false, 0, "k", "Tensor", "contiguous", T("(10,)", "float16"), "T=(10,),fp16,", "0", "40", "contiguous", '-'},
	{0, false, 0, "k", "Tensor", "any", T("(10,)", "uint8"), "T=(10,),uint8,", "0", "10", "any", '-'},
	{0, false, 0, "k", "fused_adam_cuda", "adam",
	 T("(10,)", "float32") ", " T("(10,)", "float16") ", " T("(10,)", "float32") ", " T("(10,)", "float32") ", " T("(10,)", "float16") ", " V("float", "0.1") ", " V("float", "0.1") ", " V("float", "0.1") ", " V("float", "0.1") ", " V("float", "0.1") ", " V("int", "1") ", " V("int", "1"),
	 "T=(10,),fp32,fp16,", "0", "280", "adam", '-'},
	/* without a formula */
	{0, false, 0, "k", F, "layer_norm", T("(35, 20)", "float32") ", " V("tuple", "(20,)") ", " T("(20,)", "float32"),
	 "T=[(35,20),(20,)],['float32','float32']", "0", "0", "layer_norm", '-'},
	{0, false, 0, "k", "torch", "__getattr__", V("str", "'x'"), "T=[],[]", "0", "0", "__getattr__", '-'},
	/* what does not fit 64 bits is refused, not wrapped */
	{0, false, 0, "sgemm", "torch", "mm", T("(4000000000, 4000000000)", "float32") ", " T("(4000000000, 4)", "float32"), ABORTS},
};

static char *text_of(struct pyprof_num v)
{
	struct buf b = {0};
	pyprof_num_put(&b, v);
	buf_char(&b, '\0');
	return b.p;
}

static void check(const struct row *r, enum pyprof_rules rules)
{
	struct arena a = {0};
	struct buf text = {0};
	struct pyprof_marker m;
	struct pyprof_model out = {0};
	buf_printf(&text, "{'mod': '%s', 'op': '%s', 'args': [%s]}", r->mod, r->op, r->args);
	assert_int_equal(pyprof_marker_parse(buf_view(&text), &a, &m), 0);
	const struct pyprof_call c = {.rules = rules, .marker = &m, .mod = str_from(r->mod), .op = str_from(r->op), .kernel = str_from(r->kernel),
	                              .backward = r->backward, .sub = r->sub, .grid = {2, 4, 1}};
	int rc = pyprof_model_of(&c, &out);
	if (!r->flops) {
		assert_int_equal(rc, -1);
		assert_non_null(out.why);
	} else {
		if (rc)
			print_error("%s.%s %s: %s\n", r->mod, r->op, r->kernel, out.why);
		assert_int_equal(rc, 0);
		char *flops = text_of(out.flops), *bytes = text_of(out.bytes);
		buf_char(&out.params, '\0');
		assert_string_equal(out.params.p, r->params);
		assert_string_equal(flops, r->flops);
		assert_string_equal(bytes, r->bytes);
		assert_true(str_eqc(out.op, r->out_op));
		assert_int_equal(out.tc, r->tc);
		free(flops);
		free(bytes);
	}
	buf_release(&out.params);
	buf_release(&text);
	arena_release(&a);
}

static void test_formulas(void **state)
{
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		if (rows[i].rules != 2)
			check(&rows[i], PYPROF_3);
		if (rows[i].rules != 3)
			check(&rows[i], PYPROF_2);
	}
}

static void test_numbers(void **state)
{
	static const struct {
		double v;
		const char *text;
	} floats[] = {{140000, "140000.0"}, {4.5, "4.5"}, {0, "0.0"}, {1e16, "1e+16"}, {9999999999999998, "9999999999999998.0"}, {0.1, "0.1"},
	              {1.5e300, "1.5e+300"}, {123456789012345680, "1.2345678901234568e+17"}, {1.0 / 3, "0.3333333333333333"}, {0.0001, "0.0001"},
	              {0.00001, "1e-05"}};
	for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
		char *t = text_of((struct pyprof_num){.f = floats[i].v, .is_float = true});
		assert_string_equal(t, floats[i].text);
		free(t);
	}
	char *t = text_of((struct pyprof_num){.i = -42});
	assert_string_equal(t, "-42");
	free(t);
	assert_int_equal(pyprof_num_int((struct pyprof_num){.f = 4.9, .is_float = true}), 4);
}

static void test_short_names(void **state)
{
	static const char *const names[][2] = {
		{"void at::native::vectorized_elementwise_kernel<4, float>(int)", "vectorized_elementwise_kernel"},
		{"void <unnamed>::softmax_warp_forward<float>(float *)", ""},
		{"void (anonymous namespace)::fill(int)", "fill"},
		{"volta_sgemm_128x64_nn", "volta_sgemm_128x64_nn"},
		{"cudnn::detail::bn_fw(int)", "cudnn::detail::bn_fw"},
		{"void at::native::(anonymous namespace)::RowwiseMoments<float>(long)", "RowwiseMoments"},
		{"", ""},
	};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		struct buf b = {0};
		pyprof_short_name(&b, str_from(names[i][0]));
		assert_true(str_eqc(buf_view(&b), names[i][1]));
		buf_release(&b);
	}
}

/* Texts that are no markers are refused, and end. */
static void test_damaged_markers(void **state)
{
	static const char *const texts[] = {"", "{", "{}", "{'mod': 'a'}", "{'mod': 'a', 'op': 'b', 'args': [}", "{'mod': 'a', 'op': 'b', 'args': [{'name': 'x'",
	                                    "{'mod': 'a', 'op': 'b', 'args': [{'shape': (1, 'x')}]}", "{'mod': a, 'op': 'b', 'args': []}",
	                                    "{'mod': 'a', 'op': 'b', 'args': [{'value': ((((((((((((((((((((((((((((((((((((((((1}]}"};
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct arena a = {0};
		struct pyprof_marker m;
		assert_int_equal(pyprof_marker_parse(str_from(texts[i]), &a, &m), -1);
		arena_release(&a);
	}
	struct arena a = {0};
	struct pyprof_marker m;
	const char *good = "{\"mod\": \"it's\", 'op': 'a\\'b', 'callid': 3, 'args': [{'name': 'x', 'type': 'list', 'value': [1, 2.5, None]}, "
			   "{'name': '', 'type': 'dict', 'value': {'a': (1, {2: 3})}}]}";
	assert_int_equal(pyprof_marker_parse(str_from(good), &a, &m), 0);
	assert_true(str_eqc(m.mod, "it's") && str_eqc(m.op, "a'b"));
	assert_int_equal(m.n, 2);
	assert_int_equal(m.arg[0].kind, PYPROF_SEQ);
	assert_int_equal(m.arg[0].n_seq, 3);
	assert_false(m.arg[0].seq_of_ints);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_formulas),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_short_names),
		cmocka_unit_test(test_damaged_markers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
