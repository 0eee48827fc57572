"""What DLProf annotates programs with: by opscope.torch, which writes the same markers."""
from nvidia_dlprof_pytorch_nvtx.config import Config
from opscope import _annotate
from opscope.torch import start_graph, stop_graph
from opscope_pyprof.annotate import add_wrapper, begin

# traceMarker(op_name): the marker of where a call of the op stands, as it would be written here: a dict as text. With names of functions as init() was told.
traceMarker = _annotate.trace_marker

__all__ = ["add_wrapper", "init", "start_graph", "stop_graph", "traceMarker"]


def init(enable_function_stack=False, capture_input_ops=False, delay_graph_capture=False, debug_graph=False):
    options = dict(enable_function_stack=enable_function_stack, capture_input_ops=capture_input_ops, delay_graph_capture=delay_graph_capture,
                   debug_graph=debug_graph)
    Config(**options)
    begin("nvidia_dlprof_pytorch_nvtx", compat="dlprof", **options)
