"""Which functions are wrapped, and which are not. All lists of names are here.

PyProf and DLProf's module for PyTorch wrapped functions by rules (is_function) less some names; init(compat=...) does the same. Without compat
init() wraps what those rules give, less what does no work, and besides the owners of OWN_OWNERS, OWN_METHODS and autograd.Function.apply.

To leave a name out, add it to one of these, in alphabetical order of its list:
  PROTOCOL    how Python itself handles objects; in all modes
  RECURSIVE   what a wrapper needs itself, and would call without end; in all modes
  NO_WORK     functions that start no work on any device: in our own mode alone, since PyProf's and DLProf's lists are what they are. With the name
              of its owner in front ("torch.cond") it is left out there alone, where another owner has a function of that name that works
  STATE       how the names of whole families of such functions begin
CHEAP is PyProf's own list and does not grow. To wrap the functions of another module of torch, add its name to OWN_OWNERS; where its functions
are aten ops with a beginning of their own ("fft_"), add that to src/op/marker_ops.c, which finds their FLOPs.
"""
from __future__ import annotations

import importlib
import importlib.util
import inspect
import types
from typing import Any, List, Tuple

# Names that no mode wraps: how Python itself handles the object, what would call itself, and what is cheap and does no work on a device.
PROTOCOL = frozenset("""
__all__ __array__ __array_priority__ __array_wrap__ __bool__ __builtins__ __cached__ __class__ __deepcopy__ __delattr__ __delitem__ __dict__ __dir__
__doc__ __file__ __format__ __getattr__ __getattribute__ __getitem__ __hash__ __index__ __init__ __init_subclass__ __iter__ __len__ __loader__
__module__ __name__ __new__ __nonzero__ __package__ __path__ __reduce__ __reduce_ex__ __repr__ __reversed__ __setattr__ __setitem__ __setstate__
__sizeof__ __spec__ __str__ __subclasshook__ __torch_dispatch__ __torch_function__ __version__ __weakref__
""".split())
RECURSIVE = frozenset("size tolist dim is_storage item data_ptr".split())
CHEAP = frozenset("""
autocast_decrement_nesting autocast_increment_nesting contiguous detach empty from_numpy handle_torch_function has_torch_function
has_torch_function_unary has_torch_function_variadic is_autocast_enabled is_available is_complex is_floating_point is_grad_enabled is_initialized
is_tensor numel requires_grad_ set_autocast_enabled to type
""".split())
NEVER = PROTOCOL | RECURSIVE | CHEAP

STATE = ("get_", "set_", "is_", "are_", "has_", "init_", "autocast_", "parse_", "import_", "can_", "use_", "manual_", "cudnn_is", "new_group")
NO_WORK = frozenset("""
__contains__ __cuda_array_interface__ __dlpack__ __dlpack_device__ align_as align_to as_sparse_gradcheck as_subclass backward batch_isend_irecv
boolean_dispatch broadcast_shapes clear_autocast_cache compile compiled_with_cxx11_abi data destroy_process_group detach_ device element_size fork
initial_seed ipc_collect layout load merge_type_from_type_comment names ndimension nelement obj promote_types refine_names register_hook
register_post_accumulate_grad_hook reinforce rename rename_ result_type retain_grad save seed share_memory_ storage storage_offset storage_type stride
sym_float sym_int sym_ite sym_max sym_min sym_not torch.cond typename unify_type_list untyped_storage vitals_enabled vmap wait while_loop
""".split())

# Modules of torch whose functions init() wraps beside those of PyProf's owners; what a version has not is left out.
OWN_OWNERS = ("fft", "linalg", "sparse", "special")

# Methods of torch.Tensor that are protocol for PyProf and start work: init() without compat wraps them.
OWN_METHODS = ("__getitem__", "__setitem__")

# By their type alone: objects that are asked for more may answer with warnings.
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.MethodDescriptorType, types.WrapperDescriptorType)

RNN = ("RNN", "RNNCell", "LSTM", "LSTMCell", "GRU", "GRUCell")

APEX_EXTENSIONS = ("amp_C", "fused_adam_cuda", "fused_lamb_cuda", "fused_layer_norm_cuda", "distributed_lamb_cuda", "xentropy_cuda", "mlp_cuda")
APEX_PACKAGES = ("apex.amp", "apex.contrib.groupbn", "apex.contrib.multihead_attn", "apex.contrib.optimizers", "apex.contrib.sparsity",
                 "apex.contrib.xentropy", "apex.fp16_utils", "apex.mlp", "apex.multi_tensor_apply", "apex.optimizers", "apex.parallel")
APEX_METHODS = ("forward", "backward", "step")


def defining(owner: Any, name: str) -> Any:
    """The module, or the class among a class and its bases, that has the attribute itself; None where none has it."""
    return next((c for c in (owner.__mro__ if inspect.isclass(owner) else (owner,)) if name in vars(c)), None)


def is_function(owner: Any, name: str) -> bool:
    """Whether PyProf would have wrapped the attribute. What a class has from `object` is left alone."""
    if len(name) >= 2 and name[0] == "_" and name[1] != "_" or name in NEVER:
        return False
    if inspect.isclass(owner):
        place = defining(owner, name)
        if place in (None, object) or isinstance(vars(place)[name], (staticmethod, classmethod, property)):
            return False
    return issubclass(type(getattr(owner, name, None)), _FUNCTIONS)


def functions(owner: Any) -> List[str]:
    """Names in `owner`, a module or class, that PyProf wrapped."""
    return [name for name in dir(owner) if is_function(owner, name)]


def does_work(owner: Any, name: str) -> bool:
    """Whether init() without compat wraps such a function: not what sets or asks for the state of the library, or says something about a tensor alone."""
    return name not in NO_WORK and f"{getattr(owner, '__name__', '')}.{name}" not in NO_WORK and not name.startswith(STATE)


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except Exception:  # a stand-in for it, or a broken one
        return False


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name) if _is_there(name) else None
    except Exception:  # a broken package is one that is not there
        return None


def apex() -> List[Tuple[Any, str]]:
    """(owner, name) of all of APEX that is wrapped; empty where there is none."""
    if not _is_there("apex") and not _is_there("amp_C"):
        return []
    found: List[Tuple[Any, str]] = []
    for name in APEX_EXTENSIONS:
        module = _module(name)
        found += [(module, f) for f in functions(module)] if module else []
    for name in APEX_PACKAGES:
        module = _module(name)
        for _, one in inspect.getmembers(module, inspect.isclass) if module else []:
            if (one.__module__ + ".").startswith(name + "."):
                found += [(one, m) for m in APEX_METHODS if isinstance(vars(one).get(m), (types.FunctionType, staticmethod))]
    return found
