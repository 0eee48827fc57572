"""Tells whoever records this process what PyTorch does: which layer of the model runs, from which line, with which shapes, forward or backward.

    import opscope.torch
    opscope.torch.init()

before the training loop, and the run under `opscope record -- python3 train.py`. Where nobody records, init() does nothing at all.
"""
from __future__ import annotations

import atexit
import contextlib
import functools
import importlib
import inspect
import json
import multiprocessing.util
import os
import sys
import threading
import warnings
from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import torch
import torch.autograd.profiler
import torch.utils.data
from opscope import _annotate, _compat, _record_function

__all__ = ["init", "close", "wrap", "start_graph", "stop_graph"]

_CONVOLUTIONS = ("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d")

# What the recurrent modules call; their forward() is a layer.
_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu", "lstm_cell", "gru_cell", "rnn_tanh_cell", "rnn_relu_cell")

_MISSING = object()

# Of type.__flags__.
_HEAP_TYPE, _IMMUTABLE_TYPE = 1 << 9, 1 << 8


class _Patch:
    """An attribute that can be put in the place of another one, and taken out again."""

    def __init__(self, owner: Any, name: str, new: Any) -> None:
        self.owner, self.name, self.new = owner, name, new
        self.old = vars(owner).get(name, _MISSING)
        self.there = False

    def put(self) -> None:
        if not self.there:
            setattr(self.owner, self.name, self.new)
            self.there = True

    def take(self) -> None:
        if vars(self.owner).get(self.name) is not self.new:
            return  # somebody has put his own there since: our wrapper only passes on
        self.there = False
        if self.old is _MISSING:
            delattr(self.owner, self.name)
        else:
            setattr(self.owner, self.name, self.old)


_Options = Dict[str, Any]


class _State:
    """What there is between init() and close()."""

    def __init__(self) -> None:
        self.options: Optional[_Options] = None
        self.patches: List[_Patch] = []  # what is taken out while a compiler looks
        self.guards: List[_Patch] = []   # what stays
        self.emitter: Optional[_Emitter] = None
        self.facts: Set[str] = set()     # that were told


_state = _State()
_out = 0  # how many compilers look, whatever init() and close() do meanwhile
_here = threading.local()  # .out: how many of those on this thread
_lock = threading.RLock()
_synchronize_lock = threading.RLock()  # who changes torch.cuda.synchronize; each thread that starts does, also while _lock is held
_wrapped: List[Tuple[Any, str]] = []  # by wrap()
_dynamo_is_prepared = False
_workers_tell = False  # in what is called after each fork, for good
_form: Optional[str] = None  # of what was written in this process last


def init(*, stacks: bool = True, layers: bool = True, links: str = "auto", enable_function_stack: bool = False, capture_input_ops: bool = False,
         delay_graph_capture: bool = False, debug_graph: bool = False, compat: Optional[str] = None, force: bool = False) -> bool:
    """Begins to annotate; True when somebody listens.

    stacks: the line that each function was called from, and the lines before it. layers: the modules of the model.
    links: how backward work is linked to forward calls: "nvtx" (torch's own numbers, by emit_nvtx), "hooks" (hooks of ours), "none";
    "auto" is "nvtx" where there is CUDA.
    enable_function_stack: names of functions as DLProf has them. capture_input_ops: which call made the inputs of a call, by numbers;
    with delay_graph_capture between start_graph() and stop_graph() only. debug_graph is there for programs written for DLProf, and does nothing.
    compat: "pyprof" or "dlprof" writes NVTX ranges with the texts of those tools, which read them still.
    force: also where nobody listens.

    A second call changes the options. Call it in the process that trains, after `import torch`, at any time. A capture in which the form of the
    annotations changes (compat) is two halves for the reports: a RuntimeWarning says so.
    """
    options = dict(stacks=stacks, layers=layers, links=links, enable_function_stack=enable_function_stack or capture_input_ops and compat == "dlprof",
                   capture_input_ops=capture_input_ops, delay_graph_capture=delay_graph_capture, compat=compat, force=force)
    forms = (None, *_annotate.formats()[1:])
    if compat not in forms:
        raise ValueError(f"compat={compat!r}: must be one of {', '.join(map(repr, forms))}")
    if links not in ("auto", "nvtx", "hooks", "none"):
        raise ValueError(f"links={links!r}: 'auto', 'nvtx', 'hooks' or 'none'")
    if links == "nvtx" and not torch.cuda.is_available():
        raise ValueError("links='nvtx' needs CUDA, which is not available")
    if force or _listens():
        _import_quantization()  # no lock of ours is held while modules are imported
    with _lock:
        if options == _state.options:
            _state.options = options  # by who called last: a profile that set the same before it leaves them
            return _listens()
        close()
        _state.options = options
        if not _listens() and not force:
            return False
        try:
            _begin(options)
        except BaseException:
            close()
            raise
        return _listens()


def close() -> None:
    """Ends it, and puts everything back as it was. Does nothing when init() was not called. What was left out meanwhile because there was too much
    of it is told by a RuntimeWarning; where close() is not called, at the end of the process."""
    global _state
    with _lock:
        _annotate.enable(False)
        if _state.emitter:
            _state.emitter.close()
        for patch in reversed(_state.patches + _state.guards):
            patch.take()
        _annotate.forget()
        _state = _State()
    _tell_left_out()


def wrap(owner: Any, name: str) -> None:
    """Annotates `owner.name` too, from init() on: a function of a module of Python, a method or class method of a class, the forward or backward of an
    autograd.Function. TypeError for another owner, as an object (its class is the owner), or a class whose attributes cannot be set; for what is no
    function, as a class, and for coroutines and generators, whose calls return before they run."""
    function = getattr(owner, name)
    if not callable(function) or inspect.isclass(function):
        raise TypeError(f"{name!r} is not a function")
    if any(is_one(function) for is_one in (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction)):
        raise TypeError(f"{name!r} is a coroutine or generator: its call returns before it runs")
    if not (inspect.isclass(owner) or inspect.ismodule(owner)):
        raise TypeError(f"the owner of {name!r} is a {type(owner).__name__}: it must be a module of Python, or a class")
    if inspect.isclass(owner) and (not owner.__flags__ & _HEAP_TYPE or owner.__flags__ & _IMMUTABLE_TYPE):
        raise TypeError(f"{owner.__name__} is a class whose attributes cannot be set")
    with _lock:
        if any(o is owner and n == name for o, n in _wrapped):
            return
        patch = _wrapper_patch(owner, name)
        patch.put()  # its class may forbid it
        if not _state.patches or _out:
            patch.take()
        if _state.patches:
            _state.patches.append(patch)
        _wrapped.append((owner, name))


def start_graph() -> None:
    """From here on it is written which call made the inputs of which: init(capture_input_ops=True, delay_graph_capture=True)."""
    _graph(True)


def stop_graph() -> None:
    """Until here."""
    _graph(False)


def _is_free(lock: Any) -> bool:
    """Or this thread's."""
    free: bool = lock.acquire(blocking=False)
    if free:
        lock.release()
    return free


def _after_fork() -> None:
    """In the child, where the thread that held a lock is not, nor goes on with what it had begun: init() begins anew, and what was taken out for a
    compiler on another thread is put back."""
    global _lock, _synchronize_lock, _out
    if not _is_free(_lock):
        _lock = threading.RLock()
        _state.options = None
    if not _is_free(_synchronize_lock):
        _synchronize_lock = threading.RLock()
    looked, _out = _out, getattr(_here, "out", 0)
    if looked and not _out:
        _put_patches()


os.register_at_fork(after_in_child=_after_fork)


def _worker_begins(_: Any) -> None:
    """Workers of multiprocessing, as those of data loaders, leave by os._exit() when all is well: what runs last in them says so."""
    multiprocessing.util.Finalize(None, _annotate.leaving, exitpriority=-1000)


def _tell_end_of_workers() -> None:
    global _workers_tell
    if not _workers_tell:
        _workers_tell = True
        multiprocessing.util.register_after_fork(_worker_begins, _worker_begins)


def _listens() -> bool:
    return _annotate.listener() != "none"


def _format(options: _Options) -> str:
    """Only the capture library takes arguments of ranges: for other tools all is said in texts."""
    compat: Optional[str] = options["compat"]
    return compat or ("dlprof" if _annotate.listener() == "nvtx" else "own")


def _links(options: _Options) -> str:
    if options["compat"]:
        return "none"  # programs for those tools call emit_nvtx themselves
    if options["links"] == "auto":
        return "nvtx" if torch.cuda.is_available() else "hooks"
    return str(options["links"])


def _graph(call_ids: bool) -> None:
    if _state.options and _state.patches:
        _configure(_state.options, call_ids)


def _overrides() -> _Options:
    """How a program's __torch_function__ does not hear what we ask tensors. DisableTorchFunction keeps it from classes, and since torch 2.0 from modes, too.
    In 1.13 these are a stack, and what looks at it is always made so; before, there was one mode."""
    c = torch._C
    one_mode, stack = getattr(c, "_get_torch_function_mode", None), getattr(getattr(torch, "overrides", None), "_TorchFunctionStackMode", None)
    return dict(plain=(torch.Tensor, torch.nn.Parameter), heard=getattr(c, "_has_torch_function_unary", None), guard=getattr(c, "DisableTorchFunction", None),
                set_mode=getattr(c, "_set_torch_function_mode", None), get_mode=one_mode or stack)


def _configure(options: _Options, call_ids: bool) -> None:
    _annotate.overrides(**_overrides())
    _annotate.configure(tensor=torch._C._TensorBase if hasattr(torch._C, "_TensorBase") else torch._C.TensorBase, format=_format(options),
                        stacks=bool(options["stacks"]), function_stacks=bool(options["enable_function_stack"]), call_ids=call_ids,
                        layers=bool(options["layers"]) and not options["compat"], links=_links(options) == "hooks",
                        leave_out=os.path.join(os.path.dirname(__file__), ""))


def _tell_left_out() -> None:
    for what, times in _annotate.left_out().items():
        warnings.warn(f"{what} ({times} {'time' if times == 1 else 'times'})", RuntimeWarning, stacklevel=3)


def _tell_form(form: str) -> None:
    global _form
    before, _form = _form, form
    if before not in (None, form) and _listens():
        warnings.warn(f"opscope.torch.init: annotations were in the form {before!r} until now, and are in the form {form!r} from here on: a report of this "
                      "capture shows the one or the other", RuntimeWarning, stacklevel=4)


def _begin(options: _Options) -> None:
    _tell_form(_format(options))
    atexit.unregister(_tell_left_out)
    atexit.register(_tell_left_out)
    # Before there are wrappers: what they do depends on which class that of tensors is.
    _configure(options, call_ids=bool(options["capture_input_ops"]) and not options["delay_graph_capture"])
    for patch in _wrappers(options) + _ranges(options):
        _add(patch)
    _state.guards = [*_compiler_guards(), *_facts(options)]
    for guard in _state.guards:
        guard.put()
    _annotate.enable(True)
    _tell_end_of_workers()
    if _links(options) == "nvtx":
        _state.emitter = _Emitter()
        _state.emitter.begin()
        for guard in _state.emitter.guards():
            _state.guards.append(guard)
            guard.put()


def _add(patch: _Patch) -> None:
    _state.patches.append(patch)
    if not _out:
        patch.put()


class _unpatched:
    """Whoever reads the program rather than run it must find torch's own functions."""

    def __enter__(self) -> None:
        global _out
        with _lock:
            _out += 1
            _here.out = getattr(_here, "out", 0) + 1
            if _out == 1:
                for patch in reversed(_state.patches):
                    patch.take()

    def __exit__(self, *unused: Any) -> None:
        global _out
        with _lock:
            _out = max(_out - 1, 0)
            _here.out = max(getattr(_here, "out", 0) - 1, 0)
            if not _out:
                _put_patches()


def _put_patches() -> None:
    for patch in _state.patches:
        patch.put()


# ---- functions -----------------------------------------------------------------------------------------------------------------------


def _wrapper_patch(owner: Any, name: str, before: Optional[Callable[[], None]] = None) -> _Patch:
    place = _compat.defining(owner, name)
    there = vars(place)[name] if place is not None else None
    if isinstance(there, classmethod) and inspect.isfunction(there.__func__):
        # What is bound to the class that it is called on: also to one below the owner.
        return _Patch(owner, name, classmethod(_annotate.method(there.__func__, owner, name, before)))
    static = isinstance(there, (staticmethod, classmethod))
    original = getattr(owner, name)
    binds = not static and (inspect.isclass(owner) or inspect.isfunction(original))
    return _Patch(owner, name, (_annotate.method if binds else _annotate.function)(original, owner, name, before))


def _apply_patch() -> _Patch:
    """What a program's autograd.Function does is one op, whose node in the backward pass is the program's."""
    owner = torch.autograd.Function
    there = vars(_compat.defining(owner, "apply"))["apply"]
    if isinstance(there, classmethod):  # since torch 2.0
        return _wrapper_patch(owner, "apply")

    @functools.wraps(owner.apply)
    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        return there.__get__(None, cls)(*args, **kwargs)
    return _Patch(owner, "apply", classmethod(_annotate.method(apply, owner, "apply", None)))


def _wrappers(options: _Options) -> List[_Patch]:
    own = not options["compat"]
    owners = [torch, torch.Tensor, torch.nn.functional]
    if own:
        owners += [getattr(torch, n) for n in _compat.OWN_OWNERS if inspect.ismodule(getattr(torch, n, None))]
    if options["compat"] != "dlprof" and torch.distributed.is_available():
        owners.append(torch.distributed)
    found = [(o, n) for o in owners for n in _compat.functions(o) if not own or _compat.does_work(o, n)]
    if not own:
        found += [(getattr(torch.nn, c), "forward") for c in _compat.RNN]
    else:
        found += [(torch.Tensor, n) for n in _compat.OWN_METHODS]
    found += _compat.apex()
    found += [(o, n) for o, n in _wrapped if not any(o is p and n == m for p, m in found)]
    # DLProf asked whether convolutions are tuned; without CUDA there is nothing to tune.
    asks = options["compat"] == "dlprof" or own and torch.cuda.is_available()
    recurrent = [n for n in _RECURRENT if own and hasattr(torch._VF, n)]
    return [_Patch(torch._VF, n, _annotate.function(getattr(torch._VF, n), torch, n)) for n in recurrent] + ([_apply_patch()] if own else []) + [
        _wrapper_patch(o, n, _tell_benchmark if asks and o is torch.nn.functional and n in _CONVOLUTIONS else None) for o, n in found]


def _tell_benchmark() -> None:
    if not torch.backends.cudnn.benchmark:
        _fact(cudnn_benchmark_disabled=True)


# ---- ranges --------------------------------------------------------------------------------------------------------------------------


def _ranges(options: _Options) -> List[_Patch]:
    if options["compat"]:
        return _dlprof_dataloader() if options["compat"] == "dlprof" else []
    patches = [_Patch(torch.nn.Module, "__call__", _annotate.layer_method(torch.nn.Module.__call__, torch.nn.Module, "__call__"))]
    record = torch.autograd.profiler.record_function
    patches += [_Patch(record, "__enter__", _enter(record.__enter__)), _Patch(record, "__exit__", _exit(record.__exit__))]
    scaler = getattr(torch.amp, "GradScaler", torch.cuda.amp.GradScaler)
    patches += [_Patch(scaler, n, _ranged(vars(scaler)[n], "GradScaler." + n)) for n in ("scale", "unscale_", "step", "update") if n in vars(scaler)]
    if _links(options) == "hooks":
        patches += [_Patch(torch.autograd, n, _backward(getattr(torch.autograd, n))) for n in ("backward", "grad")]
    return patches


def _enter(original: Any) -> Any:
    """torch names its optimizers' steps and data loaders' batches by record_function, as programs name what they do."""
    @functools.wraps(original)
    def __enter__(self: Any) -> Any:
        entered = original(self)  # first: one that fails is not left
        if not (_state.emitter and _state.emitter.active()):
            _record_function.begin(self, sys._getframe(1))
        return entered
    return __enter__


def _exit(original: Any) -> Any:
    @functools.wraps(original)
    def __exit__(self: Any, *what: Any) -> Any:
        try:
            return original(self, *what)
        finally:
            _record_function.end(self, sys._getframe(1))
    return __exit__


def _ranged(original: Any, text: str) -> Any:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        _annotate.push(text)
        try:
            return original(*args, **kwargs)
        finally:
            _annotate.pop()
    return call


def _backward(original: Any) -> Any:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        was = _annotate.begin_backward()
        try:
            return original(*args, **kwargs)
        finally:
            _annotate.end_backward(was)
    return call


def _dlprof_dataloader() -> List[_Patch]:
    iterator = torch.utils.data.dataloader._BaseDataLoaderIter
    original = iterator.__next__

    @functools.wraps(original)
    def __next__(self: Any) -> Any:
        _annotate.push(_annotate.trace_marker("DataLoader") or "{'traceMarker': []}")
        _annotate.push("{'mod': 'torch.utils.data.dataloader', 'op': 'DataLoader', 'args': []}")
        try:
            return original(self)
        finally:
            _annotate.pop()
            _annotate.pop()
    return [_Patch(iterator, "__next__", __next__), *([_Patch(iterator, "next", __next__)] if "next" in vars(iterator) else [])]


# ---- facts about the program ---------------------------------------------------------------------------------------------------------


def _fact_if(true: Any, **config: Any) -> None:
    if true:
        _fact(**config)


def _loader_fact(loader: Any) -> None:
    """What its program gave it may be of any type: what is no number, or a tensor, is not said."""
    config = {}
    for name, kind in (("num_workers", int), ("pin_memory", bool)):
        value = getattr(loader, name, kind())
        with contextlib.suppress(Exception):
            if not isinstance(value, torch.Tensor):
                config[name] = kind(value)
    if config:
        _fact(**config)


def _fact(**config: Any) -> None:
    """Once each: a range that detectors read."""
    text = json.dumps({"model_config": config})
    if text in _state.facts or not _state.options:
        return
    _state.facts.add(text)
    _annotate.push(text)
    _annotate.pop()


def _after(owner: Any, name: str, tell: Callable[[Any], Any]) -> _Patch:
    """Calls tell(self or first argument) when the function has returned. What cannot be told is no matter of the program."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        with contextlib.suppress(Exception):
            tell(args[0] if args else None)
        return result
    return _Patch(owner, name, call)


def _record_function_made(original: Any) -> Any:
    """torch itself uses it for its optimizers and data loaders: that says nothing about the program. Old ones make a tensor in it."""
    @functools.wraps(original)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        if (sys._getframe(1).f_globals.get("__name__") or "").split(".")[0] != "torch":
            _fact(record_function=True)
        was = _annotate.quiet(True)
        try:
            original(self, *args, **kwargs)
        finally:
            _annotate.quiet(was)
    return __init__


def _facts(options: _Options) -> List[_Patch]:
    if options["compat"] == "pyprof":
        return []
    profiler = torch.autograd.profiler
    anomaly = torch.autograd.anomaly_mode

    patches = [
        _after(torch.utils.data.DataLoader, "__init__", _loader_fact),
        _after(torch.autocast, "__init__", lambda a: _fact_if(getattr(a, "_enabled", True), amp_enabled=True)),
        _after(anomaly.detect_anomaly, "__enter__", lambda _: _fact(detect_anomaly=True)),  # its __init__ warns whoever calls it
        _after(anomaly.set_detect_anomaly, "__init__", lambda _: _fact_if(torch.is_anomaly_enabled(), detect_anomaly=True)),
        _Patch(profiler.record_function, "__init__", _record_function_made(profiler.record_function.__init__)),
        _after(profiler.profile, "__init__", lambda p: _fact_if(getattr(p, "enabled", True), profile=True)),
        _after(profiler.emit_nvtx, "__init__", lambda e: _fact_if(getattr(e, "enabled", True), emit_nvtx=True)),
    ]
    patches += [_after(torch.autograd, "gradcheck", lambda _: _fact(gradcheck=True)), _after(torch.autograd, "gradgradcheck", lambda _: _fact(gradgradcheck=True))]
    apex_amp = sys.modules.get("apex.amp")
    if inspect.ismodule(apex_amp) and hasattr(apex_amp, "initialize"):
        patches.append(_after(apex_amp, "initialize", lambda _: _fact(amp_enabled=True)))
    return patches


# ---- compilers -----------------------------------------------------------------------------------------------------------------------


_QUANTIZATION = "torch.ao.quantization.quantize_fx"


def _import_quantization() -> None:
    """Its tables name torch's functions, which it finds again by identity: they must be made of torch's own. 40 ms, where that package is there already."""
    if _QUANTIZATION.rpartition(".")[0] in sys.modules and _QUANTIZATION not in sys.modules:
        with _unpatched(), warnings.catch_warnings(), contextlib.suppress(Exception):
            warnings.simplefilter("ignore")
            importlib.import_module(_QUANTIZATION)


def _compiler_guards() -> List[_Patch]:
    guards = []
    quantization = sys.modules.get(_QUANTIZATION)
    # Of quantization those that its functions call by their module: programs have these by name.
    for owner, name in ((torch.jit, "script"), (torch.jit._script, "script"), (torch.jit, "trace"), (torch.jit, "trace_module"),
                        (torch.jit._trace, "trace"), (torch.jit._trace, "trace_module"), (torch.jit._recursive, "create_script_module"),
                        (torch._C.ScriptModule, "_define"), (quantization, "_prepare_fx"), (quantization, "_convert_fx"),
                        (quantization, "_fuse_fx"), (quantization, "_prepare_standalone_module_fx"), (quantization, "_convert_standalone_module_fx")):
        if owner is not None and callable(vars(owner).get(name)):
            guards.append(_Patch(owner, name, _around_compiler(vars(owner)[name])))
    for owner, name in ((torch, "compile"), (sys.modules.get("torch._dynamo"), "optimize")):
        if owner and callable(vars(owner).get(name)):
            guards.append(_Patch(owner, name, _before_dynamo(vars(owner)[name])))
    return guards


def _around_compiler(original: Any) -> Any:
    frames = _place_of(original, "_frames_up")

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        # Names of a class are looked up in the frame of who called us.
        if frames is not None and frames < len(args):
            args = (*args[:frames], args[frames] + 1, *args[frames + 1:])
        elif frames is not None:
            kwargs["_frames_up"] = kwargs.get("_frames_up", 0) + 1
        with _unpatched():
            return original(*args, **kwargs)
    return call


def _place_of(function: Any, parameter: str) -> Optional[int]:
    try:
        return list(inspect.signature(function).parameters).index(parameter)
    except ValueError:  # also of what is built in
        return None


def _before_dynamo(original: Any) -> Any:
    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        _prepare_dynamo()
        return original(*args, **kwargs)
    return call


def _prepare_dynamo() -> None:
    """Dynamo makes a table of torch's functions when it first asks, and must not find ours in it; nor while it compiles. No lock of ours is held while
    modules are imported: what they start, and who imports them at the same time, may want it."""
    global _dynamo_is_prepared
    with _lock:
        if _dynamo_is_prepared:
            return
        _dynamo_is_prepared = True
    with _unpatched():
        handler = _dynamo_parts()
    if handler is not None:
        gate = _unpatched()
        handler.register_start_callback(lambda *_: gate.__enter__())
        handler.register_end_callback(lambda *_: gate.__exit__())


def _dynamo_parts() -> Any:
    """Has Dynamo make its table, which has its name by the version; who tells when it compiles. Old versions (2.0 to 2.2) tell nobody: None."""
    for name, ask in (("trace_rules", "lookup"), ("allowed_functions", "is_allowed")):
        rules = _dynamo_part(name)
        if hasattr(rules, ask):
            getattr(rules, ask)(torch.add)
    handler = getattr(_dynamo_part("callback"), "callback_handler", None)
    return handler if hasattr(handler, "register_start_callback") else None


def _dynamo_part(name: str) -> Any:
    try:
        return importlib.import_module("torch._dynamo." + name)
    except ImportError:
        return None


# ---- emit_nvtx -----------------------------------------------------------------------------------------------------------------------


class _no_synchronize:
    """emit_nvtx waits for the device when it is entered and left. Nobody's program may wait for us, or get a context on a device that it does not use:
    not on this thread, that is."""

    def __enter__(self) -> None:
        _synchronize_lock.acquire()
        self.original, mine = torch.cuda.synchronize, threading.get_ident()

        def synchronize(*args: Any, **kwargs: Any) -> Any:
            return None if threading.get_ident() == mine else self.original(*args, **kwargs)
        torch.cuda.synchronize = synchronize

    def __exit__(self, *unused: Any) -> None:
        torch.cuda.synchronize = self.original
        _synchronize_lock.release()


class _Emitter:
    """torch's own ranges for all operators, with the numbers that link backward to forward, on each thread on which Python runs. Only one profiler
    can be on on a thread: ours goes while the program's own runs."""

    def __init__(self, make: Optional[Callable[[], Any]] = None) -> None:
        self.make = make or (lambda: torch.autograd.profiler.emit_nvtx(record_shapes=False))
        self.here = threading.local()
        self.closed = False

    def begin(self) -> None:
        if self.active() or self.closed:
            return
        one = self.make()
        self.here.own = True
        try:
            with _no_synchronize():
                one.__enter__()
            self.here.one = one
        finally:
            self.here.own = False

    def end(self) -> None:
        one, self.here.one = getattr(self.here, "one", None), None
        if one:
            self.here.own = True
            try:
                with _no_synchronize():
                    one.__exit__(None, None, None)
            finally:
                self.here.own = False

    def active(self) -> bool:
        return getattr(self.here, "one", None) is not None

    def close(self) -> None:
        """Other threads keep theirs until they end."""
        self.closed = True
        self.end()

    def guards(self) -> List[_Patch]:
        profiler = torch.autograd.profiler
        guards = [_Patch(threading.Thread, "_bootstrap_inner", self._thread(vars(threading.Thread)["_bootstrap_inner"]))]
        for owner in (profiler.profile, profiler.emit_nvtx, getattr(profiler, "emit_itt", None)):
            for name in ("__enter__", "_prepare_trace", "_start_trace"):
                if owner and name in vars(owner):
                    guards.append(_Patch(owner, name, self._leaving(vars(owner)[name])))
            if owner:
                guards.append(_Patch(owner, "__exit__", self._returning(vars(owner)["__exit__"])))
        return guards

    def _thread(self, original: Any) -> Any:
        @functools.wraps(original)
        def _bootstrap_inner(thread: Any) -> Any:
            self.begin()
            try:
                return original(thread)
            finally:
                self.end()
        return _bootstrap_inner

    def _leaving(self, original: Any) -> Any:
        @functools.wraps(original)
        def call(profile: Any, *args: Any, **kwargs: Any) -> Any:
            if not getattr(self.here, "own", False) and self.active() and getattr(profile, "enabled", True):
                self.end()
                self.here.left = profile
            return original(profile, *args, **kwargs)
        return call

    def _returning(self, original: Any) -> Any:
        @functools.wraps(original)
        def call(profile: Any, *args: Any, **kwargs: Any) -> Any:
            try:
                return original(profile, *args, **kwargs)
            finally:
                if getattr(self.here, "left", None) is profile:
                    self.here.left = None
                    self.begin()
        return call
