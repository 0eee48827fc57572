/* The NVTX ranges of NVIDIA's builds of TensorFlow, in the domain "tensorflow-core": one around each node that is run. */
#ifndef OPSCOPE_INPUT_MARKER_NODE_H
#define OPSCOPE_INPUT_MARKER_NODE_H

#include "input/marker.h"

/* What the text of a range says of its node, in either form that TensorFlow writes (core/profiler/nvtx_utils.cc):
 *
 *   TF_ENABLE_NVTX_RANGES            Conv2D: resnet/conv1/Conv2D
 *   TF_ENABLE_NVTX_RANGES_DETAILED   {"op":"Conv2D","name":"resnet/conv1/Conv2D","args":[{"name":"x","shape":[8,3,3,1]}, ...],"attrs":{"T":"float16"}}
 *
 * The span is named as the node; "op_type" is its op, "data_type" what the attribute T says, "Input Dims" and "Input names" are those of
 * its arguments. A text in neither form is a node's name. */
struct marker marker_read_node(struct build *b, struct str text);

#endif
