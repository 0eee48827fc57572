"""What the process holds while it is recorded, for the memory timeline: which blocks of memory are parameters, gradients, state of an optimizer, arguments of
modules, buffers of modules or other tensors. A recording of torch has the address of each block that was allocated or freed in it, but not what it is for, and
nothing of what was held before. The recording gets it as a fact of its own, KEY, which src/analysis/memory/memory_held.h describes.

Nothing is kept alive and no tensor is made: of tensors only the addresses and sizes of their storages are noted. Objects are looked at by their types, since
isinstance() asks them.
"""
from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
import weakref
from contextlib import suppress
from importlib import import_module
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Set, Tuple

from ._torch_modules import torch

KEY = "opscope_held_memory"
#: Ascending by how much they say: of a storage that several tensors share, the last one counts.
KINDS = ("TENSOR", "BUFFER", "INPUT", "OPTIMIZER_STATE", "GRADIENT", "PARAMETER")
TENSOR, BUFFER, INPUT, OPTIMIZER_STATE, GRADIENT, PARAMETER = range(len(KINDS))
#: c10::DeviceType by torch's names; of others memory is not told.
DEVICES = {"cpu": 0, "cuda": 1, "xpu": 12, "hpu": 17, "privateuseone": 20}
#: The library reads facts of up to 4 MiB: some 45 bytes a block, 20 a moment.
BLOCKS_MOST, MOMENTS_MOST = 60_000, 20_000
#: How deep lists and dicts in arguments and in the state of optimizers are looked through.
DEPTH = 4

Place = Tuple[int, int, int]  # device type, ordinal, address


class Block(NamedTuple):
    place: Place
    bytes: int


class Facts(NamedTuple):
    """What is told: moments in ns since the epoch, and blocks as [moment, device type, ordinal, kind, address, bytes]
    of a kind of KINDS."""

    moments: List[int]
    blocks: List[List[int]]
    #: Of blocks of the first moment, as [ns since the epoch, device type, ordinal, address].
    freed: List[List[int]]
    left_out: int

    def text(self) -> str:
        return json.dumps({"version": 1, "moments": self.moments, "kinds": KINDS, "blocks": self.blocks, "freed": self.freed, "left_out": self.left_out},
                          separators=(",", ":"))


def join(facts: Iterable[Facts]) -> Facts:
    """Of recordings that become one: what was held before the first was held before it."""
    whole = Facts([], [], [], 0)
    left_out = 0
    for f in facts:
        whole.freed.extend(f.freed)
        blocks = [[b[0] + len(whole.moments), *b[1:]] for b in f.blocks]
        room = BLOCKS_MOST - len(whole.blocks) if len(whole.moments) + len(f.moments) <= MOMENTS_MOST else 0
        left_out += f.left_out + max(len(blocks) - room, 0)
        if room:
            whole.moments.extend(f.moments)
            whole.blocks.extend(blocks[:room])
    return whole._replace(left_out=left_out)


def tell(path: str, facts: Facts) -> None:
    """Adds them to a trace, a JSON object, as its last member: the rest of the file, which may be large, stays as it is."""
    with open(path, "r+b") as f:
        end = f.seek(0, os.SEEK_END)
        f.seek(max(end - 64, 0))
        tail = f.read()
        closing = tail.rfind(b"}")
        if closing < 0:
            return
        f.seek(max(end - 64, 0) + closing)
        f.write(f",\n{json.dumps(KEY)}: {facts.text()}\n}}\n".encode())
        f.truncate()


class _Watched:
    """A storage that was held before the recording, until it is freed: torch does not record the free of host memory that was allocated before."""

    def __init__(self, place: Place, storage: Any):
        self.place = place
        self.tensors = 0
        self.dead_ns = 0  # when the last tensor of it that Python had was gone
        # Of the storage alone, not of what is in it: that is freed when it would be without this.
        self._storage = import_module("torch.multiprocessing.reductions").StorageWeakRef(storage)

    def freed(self) -> bool:
        """C++ may have it longer: an autograd graph has what it saved."""
        return bool(self._storage.expired())


class Held:
    """Follows what is held during one recording."""

    def __init__(self) -> None:
        module = torch()
        self._tensor, self._parameter, self._module, self._optimizer = module.Tensor, module.nn.Parameter, module.nn.Module, module.optim.Optimizer
        self._no_override = module._C.DisableTorchFunction
        self._strided = module.strided
        self._is_lazy_copy = getattr(module._C, "_is_cow_tensor", None)  # to ask where it lies would make the copy
        self._untyped = "untyped_storage" if hasattr(module.Tensor, "untyped_storage") else "_storage"
        own = getattr(module._C, "_get_privateuse1_backend_name", None)
        self._devices = {**DEVICES, **({own(): DEVICES["privateuseone"]} if own else {})}
        self._lock = threading.RLock()
        self._moments: List[int] = []
        self._blocks: List[List[int]] = []
        self._left_out = 0
        self._parameters: List[Any] = []  # weak references
        self._optimizers: List[Tuple[Any, int]] = []  # the same, and how many parameters have a state
        self._roots: Set[int] = set()     # ids of modules that are in no other
        self._made: Set[Place] = set()    # where what outermost modules returned lies
        self._hooks: List[Any] = []
        self._watched: Dict[Place, _Watched] = {}
        self._deaths: List[Any] = []      # weak references to the tensors of those
        self._dying: List[_Watched] = []
        self._freed: List[List[int]] = []
        self._fresh = False               # nothing has happened since begin()

    # --- moments ---

    def begin(self) -> None:
        """Before the recording begins: all tensors that Python has."""
        compiles = self._walk(watch=True)
        if not compiles:
            self._listen()
        self._fresh = True

    def step(self) -> None:
        """Between steps: gradients, and the state of optimizers that have more than before. What stays is seen at the end, since this takes the program's time."""
        fresh, self._fresh = self._fresh, False
        if fresh:
            return
        self._made.clear()
        self._bury()
        found: Dict[Place, Tuple[int, int]] = {}
        with self._no_override():
            for parameter in (ref() for ref in self._parameters):
                if parameter is not None:
                    self._see(self._gradient(parameter), GRADIENT, found)
            for i, (ref, states) in enumerate(self._optimizers):
                optimizer = ref()
                if optimizer is not None and _states(optimizer) != states:
                    self._optimizers[i] = ref, _states(optimizer)
                    self._look_at_state(optimizer, found)
        self._note(found)

    def end(self) -> None:
        """After the recording has ended: as at the beginning."""
        self._bury()
        self._walk()
        self.close()

    def close(self) -> None:
        """Nothing is followed any more; the facts stay."""
        for hook in self._hooks:
            hook.remove()
        self._hooks, self._parameters, self._optimizers, self._deaths, self._dying = [], [], [], [], []
        self._watched.clear()

    def facts(self) -> Facts:
        return Facts(self._moments, self._blocks, self._freed, self._left_out)

    def _note(self, found: Dict[Place, Tuple[int, int]]) -> None:
        with self._lock:  # modules may be called in several threads
            self._add(found)

    def _add(self, found: Dict[Place, Tuple[int, int]]) -> None:
        if len(self._moments) >= MOMENTS_MOST:
            self._left_out += len(found)
            return
        at = len(self._moments)
        self._moments.append(time.time_ns())
        ordered = sorted(((kind, place, size) for place, (kind, size) in found.items()), reverse=True)
        room = BLOCKS_MOST - len(self._blocks)
        self._blocks.extend([at, place[0], place[1], kind, place[2], size] for kind, place, size in ordered[:room])
        self._left_out += max(len(ordered) - room, 0)

    # --- what there is ---

    def _walk(self, watch: bool = False) -> bool:
        """Whether there is compiled code, which asks at each call whether modules have hooks. watch: what is found is followed until it is freed."""
        found: Dict[Place, Tuple[int, int]] = {}
        tensors, modules, optimizers = self._objects()
        with self._no_override():
            one_of = {id(t): t for t in tensors if self._is(t, self._parameter)}
            for optimizer in optimizers:
                with suppress(Exception):  # a class of a program's own
                    one_of.update((id(p), p) for group in optimizer.__dict__["param_groups"] for p in group["params"] if self._is(p, self._tensor))
                self._look_at_state(optimizer, found)
            inner: Set[int] = set()
            for module in modules:
                parts = module.__dict__
                inner.update(id(m) for m in _values(parts.get("_modules")))
                for buffer in _values(parts.get("_buffers")):
                    self._see(buffer, BUFFER, found)
            parameters = list(one_of.values())
            for parameter in parameters:
                self._see(parameter, PARAMETER, found)
                self._see(self._gradient(parameter), GRADIENT, found)
            for t in tensors:
                self._see(t, TENSOR, found)
            if watch:
                every = {id(t): t for t in tensors + parameters + [self._gradient(p) for p in parameters] if t is not None}
                for t in every.values():
                    self._watch(t)
        self._note(found)
        self._parameters = [weakref.ref(p) for p in parameters]
        self._optimizers = [(weakref.ref(o), _states(o)) for o in optimizers]
        self._roots = {id(m) for m in modules} - inner
        return _has_compiled() or any(m.__dict__.get("_compiled_call_impl") is not None or type(m).__name__ == "OptimizedModule" for m in modules)

    def _objects(self) -> Tuple[List[Any], List[Any], List[Any]]:
        """Live tensors, modules, optimizers."""
        wanted = (self._tensor, self._module, self._optimizer)
        lists: Tuple[List[Any], List[Any], List[Any]] = ([], [], [])
        kind_of: Dict[type, Optional[List[Any]]] = {}
        for one in gc.get_objects():
            kind = type(one)
            if kind not in kind_of:
                kind_of[kind] = next((found for base, found in zip(wanted, lists) if base in kind.__mro__), None)
            found = kind_of[kind]
            if found is not None:
                found.append(one)
        return lists

    @staticmethod
    def _is(one: Any, base: type) -> bool:
        return base in type(one).__mro__  # a class may have an opinion of its own on isinstance()

    def _gradient(self, parameter: Any) -> Any:
        try:
            return self._tensor.grad.__get__(parameter)
        except Exception:  # a class of a program's own
            return None

    def _look_at_state(self, optimizer: Any, found: Dict[Place, Tuple[int, int]]) -> None:
        for state in _values(optimizer.__dict__.get("state")):
            for t in self._tensors(state):
                self._see(t, OPTIMIZER_STATE, found)

    def _tensors(self, value: Any, depth: int = DEPTH) -> Iterator[Any]:
        if self._is(value, self._tensor):
            yield value
        elif depth and (self._is(value, list) or self._is(value, tuple)):
            for part in value:
                yield from self._tensors(part, depth - 1)
        elif depth and self._is(value, dict):
            for part in _values(value):
                yield from self._tensors(part, depth - 1)

    def _see(self, t: Any, kind: int, found: Dict[Place, Tuple[int, int]]) -> None:
        block = self._block(t)
        if block and found.get(block.place, (-1, 0))[0] < kind:
            found[block.place] = kind, block.bytes

    def _block(self, t: Any) -> Optional[Block]:
        """Where a tensor's storage lies; None of one without a plain storage: sparse, meta, fake, a wrapper of others."""
        return self._block_and_storage(t)[0]

    def _block_and_storage(self, t: Any) -> Tuple[Optional[Block], Any]:
        if t is None:
            return None, None
        try:
            if self._is_lazy_copy and self._is_lazy_copy(t):
                return None, None
            device = t.device
            number = self._devices.get(device.type)
            if number is None or t.layout is not self._strided:
                return None, None
            storage = getattr(t, self._untyped)()
            address, size = storage.data_ptr(), storage.nbytes()
        except Exception:  # what torch raises differs, and classes of a program raise what they like
            return None, None
        if address and size:
            return Block((number, -1 if device.index is None else device.index, address), size), storage
        inner = getattr(t, "_local_tensor", None)  # of a DTensor
        return self._block_and_storage(inner) if inner is not None and inner is not t else (None, None)

    # --- what was held before, until it is freed ---

    def _watch(self, t: Any) -> None:
        block, storage = self._block_and_storage(t)
        if block is None or block.place[0] != DEVICES["cpu"]:
            return
        with suppress(Exception):  # a class without weak references, a torch without those of storages: when it is freed is unknown then
            watched = self._watched.get(block.place) or _Watched(block.place, storage)
            self._deaths.append(weakref.ref(t, lambda ref: self._died(watched)))
            watched.tensors += 1
            self._watched[block.place] = watched

    def _died(self, watched: _Watched) -> None:
        watched.tensors -= 1
        if watched.tensors == 0:
            watched.dead_ns = time.time_ns()
            self._dying.append(watched)

    def _bury(self) -> None:
        """What has no tensor in Python any more is freed, or C++ has it still. Then it is looked at again."""
        now = time.time_ns()
        still = []
        while self._dying:  # others may be added meanwhile
            watched = self._dying.pop()
            if watched.freed():
                self._freed.append([watched.dead_ns, *watched.place])
                self._watched.pop(watched.place, None)
            else:
                watched.dead_ns = now
                still.append(watched)
        self._dying.extend(still)


    # --- arguments of modules ---

    def _listen(self) -> None:
        modules = import_module("torch.nn.modules.module")
        self._hooks = [modules.register_module_forward_pre_hook(self._before_forward), modules.register_module_forward_hook(self._after_forward)]

    def _before_forward(self, module: Any, arguments: Any) -> None:
        if id(module) not in self._roots:
            return
        with suppress(Exception):
            found: Dict[Place, Tuple[int, int]] = {}
            with self._no_override():
                for t in self._tensors((arguments, _keywords_of_caller())):
                    if t.grad_fn is None and not self._is(t, self._parameter):
                        block = self._block(t)
                        if block and block.place not in self._made:
                            found[block.place] = INPUT, block.bytes
            if found:
                self._note(found)

    def _after_forward(self, module: Any, arguments: Any, result: Any) -> None:
        """What a module made, and another one is given, is no input."""
        if id(module) not in self._roots:
            return
        with suppress(Exception), self._no_override():
            self._made.update(block.place for block in map(self._block, self._tensors(result)) if block)


def _states(optimizer: Any) -> int:
    return len(_values(optimizer.__dict__.get("state")))


def _values(parts: Any) -> List[Any]:
    """Of a dict, as dict has it."""
    return list(dict.values(parts)) if isinstance(parts, dict) else []


def _keywords_of_caller() -> Any:
    """torch's hooks for all modules are not told of keywords: the call of the module, two frames up, has them."""
    frame = sys._getframe(2)
    return frame.f_locals.get("kwargs") if frame.f_code.co_name in ("_call_impl", "inner") else None


def _has_compiled() -> bool:
    """torch.compile was used."""
    return bool(getattr(sys.modules.get("torch._dynamo.convert_frame"), "FRAME_COUNTER", 0))
