"""FLOPs of what runs, counted as it runs: torch.utils.flop_counter's interface, for every torch that has modes of its dispatcher (1.13 and later).

    with opscope.FlopCounterMode() as counter:
        model(batch).sum().backward()
    print(counter.get_table())

Matrix products, convolutions and attention are counted, forward and backward, on any device; a multiplication with an addition is 2. What else runs counts as
nothing. register_flop_formula adds formulas."""
from __future__ import annotations

from collections import defaultdict
from math import prod
from typing import Any, Callable, DefaultDict, Dict, Iterable, List, Optional, Set, Tuple, Union

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map

__all__ = ["FlopCounterMode", "flop_registry", "register_flop_formula"]

Formula = Callable[..., int]

#: Op -> its formula: of the shapes of its arguments, with those of the output as out_shape.
flop_registry: Dict[Any, Formula] = {}

_aten = torch.ops.aten


def _shape(value: Any) -> Any:
    return value.shape if isinstance(value, torch.Tensor) else value


def _by_shapes(formula: Formula) -> Formula:
    def of_call(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args, kwargs, out = tree_map(_shape, (args, kwargs, out_val))
        return formula(*args, out_shape=out, **kwargs)
    return of_call


def register_flop_formula(targets: Any, get_raw: bool = False) -> Callable[[Formula], Formula]:
    """Decorates the formula of an op, or of several: torch.ops.aten.mm and the like. It gets the call's arguments, shapes in the place of tensors, and out_shape;
    with get_raw=True the tensors themselves, and out_val. RuntimeError where the op has one already."""
    def register(formula: Formula) -> Formula:
        for target in targets if isinstance(targets, (list, tuple, set)) else [targets]:
            if not isinstance(target, torch._ops.OpOverloadPacket):
                raise ValueError(f"register_flop_formula(targets): an op as torch.ops.aten.mm was expected, not {target!r}")
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = formula if get_raw else _by_shapes(formula)
        return formula
    return register


def _known(*names: str) -> List[Any]:
    """Those of these ops that this torch has."""
    return [getattr(_aten, name) for name in names if hasattr(_aten, name)]


# --- formulas ---


@register_flop_formula(_known("mm", "_int_mm", "_scaled_mm"))
def _mm(a: Any, b: Any, *unused: Any, **more: Any) -> int:
    return 2 * int(a[0]) * int(a[1]) * int(b[1])


@register_flop_formula(_known("addmm", "_addmm_activation"))
def _addmm(bias: Any, a: Any, b: Any, *unused: Any, **more: Any) -> int:
    return _mm(a, b)


@register_flop_formula(_known("bmm"))
def _bmm(a: Any, b: Any, *unused: Any, **more: Any) -> int:
    return 2 * int(a[0]) * int(a[1]) * int(a[2]) * int(b[2])


@register_flop_formula(_known("baddbmm", "addbmm"))
def _baddbmm(bias: Any, a: Any, b: Any, *unused: Any, **more: Any) -> int:
    return _bmm(a, b)


def _convolved(x: Any, w: Any, out: Any, transposed: bool) -> int:
    """Each element of the output, transposed of the input, meets all weights of its group once: of a batch of N, 2 N |w| times the elements in space."""
    return int(2 * x[0] * prod(w) * prod((x if transposed else out)[2:]))


@register_flop_formula(_known("convolution", "_convolution", "cudnn_convolution", "convolution_overrideable", "mkldnn_convolution"))
def _convolution(x: Any, w: Any, bias: Any, stride: Any = None, padding: Any = None, dilation: Any = None, transposed: Any = False, *unused: Any,
                 out_shape: Any = None, **more: Any) -> int:
    return _convolved(x, w, out_shape, transposed is True)


@register_flop_formula(_known("convolution_backward"))
def _convolution_backward(grad_out: Any, x: Any, w: Any, bias: Any, stride: Any, padding: Any, dilation: Any, transposed: bool, output_padding: Any,
                          groups: int, output_mask: Any, out_shape: Any = None) -> int:
    """The gradients of the input and of the weights are as much work as the forward pass is, each."""
    return _convolved(x, w, grad_out, transposed) * (bool(output_mask[0]) + bool(output_mask[1]))


def _attention(q: Any, k: Any, v: Any, products_of_keys: int, products_of_values: int) -> int:
    """[..., heads, length, features]: q k^T, and the scores with v."""
    one = prod(q[:-1]) * int(k[-2])
    return int(2 * one * (products_of_keys * q[-1] + products_of_values * v[-1]))


@register_flop_formula(_known("_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
                              "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_fused_attention_overrideable"))
def _sdpa(q: Any, k: Any, v: Any, *unused: Any, **more: Any) -> int:
    return _attention(q, k, v, 1, 1)


@register_flop_formula(_known("_scaled_dot_product_flash_attention_backward", "_scaled_dot_product_efficient_attention_backward",
                              "_scaled_dot_product_cudnn_attention_backward", "_scaled_dot_product_flash_attention_for_cpu_backward",
                              "_scaled_dot_product_fused_attention_overrideable_backward"))
def _sdpa_backward(grad_out: Any, q: Any, k: Any, v: Any, *unused: Any, **more: Any) -> int:
    """The scores once more, their gradient, and those of v, q and k."""
    return _attention(q, k, v, 3, 2)


def _sequences(q: Any, k: Any, v: Any, starts_q: Any, starts_k: Any) -> List[Tuple[Any, ...]]:
    """(q, k, v) as [heads, length, features] of each sequence. Tensors are [batch, length, heads, features], of several lengths [length, heads, features] in
    a batch of one, where sequence i begins at starts[i]."""
    if starts_q is None:
        return [tuple((s[0], s[2], s[1], s[3]) for s in (q.shape, k.shape, v.shape))]
    ends_q, ends_k = starts_q.diff().tolist(), starts_k.diff().tolist()
    return [tuple((x.shape[-2], n, x.shape[-1]) for x, n in ((q, of_q), (k, of_k), (v, of_k))) for of_q, of_k in zip(ends_q, ends_k)]


def _of_sequences(after_q: int, grads: bool) -> Formula:
    """The formula of an op whose arguments, from q on, have the starts of the sequences from number `after_q` on."""
    def formula(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        args = args[1:] if grads else args
        starts = [*args[after_q:after_q + 2], *(kwargs.get(n) for n in ("cum_seq_q", "cu_seqlens_q", "cum_seq_k", "cu_seqlens_k"))]
        known = [s for s in starts if s is not None]
        of_keys, of_values = (3, 2) if grads else (1, 1)
        return sum(_attention(q, k, v, of_keys, of_values) for q, k, v in _sequences(*args[:3], *(known or (None, None))))
    return formula


for _names, _after_q, _grads in ((("_flash_attention_forward",), 3, False), (("_efficient_attention_forward",), 4, False),
                                 (("_flash_attention_backward",), 5, True), (("_efficient_attention_backward",), 5, True)):
    register_flop_formula(_known(*_names), get_raw=True)(_of_sequences(_after_q, _grads))


# --- which module runs ---


class _Modules:
    """The modules whose forward or backward pass goes on, by hooks of torch. In the backward pass one goes on from the first gradient of an output on until
    all gradients of its inputs are there, or the pass has ended."""

    def __init__(self) -> None:
        self.open: List[str] = []
        self._names: Dict[int, str] = {}
        self._hooks: List[Any] = []
        self._in_backward: Set[str] = set()
        self._alive: List[Any] = []  # modules whose id is a key

    def name(self, module: Any) -> str:
        if id(module) not in self._names:
            self._put(module, type(module).__name__)
        return self._names[id(module)]

    def _put(self, module: Any, name: str) -> None:
        self._alive.append(module)
        self._names.setdefault(id(module), name)
        for child, one in module.named_children():
            if id(one) not in self._names:
                self._put(one, f"{name}.{child}")

    def begin(self) -> None:
        hooks = torch.nn.modules.module
        self._hooks = [hooks.register_module_forward_pre_hook(self._enter), hooks.register_module_forward_hook(self._leave)]

    def end(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self.open, self._in_backward = [], set()

    @staticmethod
    def _tensors(values: Any) -> List[Any]:
        return [t for t in tree_flatten(values)[0] if isinstance(t, torch.Tensor) and t.requires_grad]

    def _enter(self, module: Any, inputs: Any) -> None:
        name = self.name(module)
        self.open.append(name)
        tensors = self._tensors(inputs) if torch.is_grad_enabled() else []
        missing = [len(tensors)]

        def has_gradient(_: Any) -> None:
            missing[0] -= 1
            if not missing[0]:
                self._leave_backward(name)
        for t in tensors:
            t.register_hook(has_gradient)

    def _leave(self, module: Any, inputs: Any, output: Any) -> None:
        name = self.name(module)
        if name in self.open:
            del self.open[len(self.open) - 1 - self.open[::-1].index(name)]
        for t in self._tensors(output) if torch.is_grad_enabled() else []:
            t.register_hook(lambda _: self._enter_backward(name))

    def _enter_backward(self, name: str) -> None:
        if not self._in_backward:
            torch.autograd.Variable._execution_engine.queue_callback(self._end_backward)
        self._in_backward.add(name)

    def _leave_backward(self, name: str) -> None:
        self._in_backward.discard(name)

    def _end_backward(self) -> None:
        self._in_backward.clear()

    def now(self) -> Set[str]:
        return {*self.open, *self._in_backward}


# --- the mode ---


class _Dispatched(TorchDispatchMode):  # type: ignore[misc]
    """Tells of each op that the dispatcher calls. What is made of others is told as these."""

    def __init__(self, tell: Callable[..., None], is_known: Callable[[Any], bool]):
        super().__init__()
        self._tell, self._is_known = tell, is_known

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Optional[Dict[str, Any]] = None) -> Any:
        kwargs = kwargs or {}
        op = func._overloadpacket
        if not self._is_known(op) and op is not getattr(torch.ops.prim, "device", None):
            with self:
                out = func.decompose(*args, **kwargs)
            if out is not NotImplemented:
                return out
        out = func(*args, **kwargs)
        self._tell(op, out, args, kwargs)
        return out


class FlopCounterMode:
    """Counts while it is entered. mods: modules that have names before they run, by default each is named after the outermost one around it that ran. depth:
    how deep the table goes; display: print it at the end. custom_mapping: formulas of ops, {torch.ops.aten.mm: formula}, for this counter alone."""

    def __init__(self, mods: Union[torch.nn.Module, Iterable[torch.nn.Module], None] = None, depth: int = 2, display: bool = True,
                 custom_mapping: Optional[Dict[Any, Formula]] = None):
        self.depth, self.display = depth, display
        #: Module -> op -> FLOPs; "Global" is all that ran.
        self.flop_counts: DefaultDict[str, DefaultDict[Any, int]] = defaultdict(lambda: defaultdict(int))
        #: Op -> formula, of the whole call.
        self.flop_registry = {**flop_registry, **{op: f if getattr(f, "_get_raw", False) else _by_shapes(f) for op, f in (custom_mapping or {}).items()}}
        self._modules = _Modules()
        self._mode = _Dispatched(self._count, self.flop_registry.__contains__)
        for module in [mods] if isinstance(mods, torch.nn.Module) else list(mods or ()):
            self._modules.name(module)

    def _count(self, op: Any, out: Any, args: Any, kwargs: Dict[str, Any]) -> None:
        formula = self.flop_registry.get(op)
        if formula:
            flops = formula(*args, **kwargs, out_val=out)
            for place in {"Global", *self._modules.now()}:
                self.flop_counts[place][op] += flops

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self._modules.begin()
        self._mode.__enter__()
        return self

    def __exit__(self, *what: Any) -> None:
        self._mode.__exit__(*what)
        self._modules.end()
        if self.display:
            print(self.get_table(self.depth))

    def get_total_flops(self) -> int:
        """Of all that ran."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> Dict[str, Dict[Any, int]]:
        """Module -> op -> FLOPs."""
        return {module: dict(ops) for module, ops in self.flop_counts.items()}

    def get_table(self, depth: Optional[int] = None) -> str:
        """Modules to that depth, each with its ops below it: FLOPs, and their share of all."""
        depth = 999999 if depth is None else depth
        total = self.get_total_flops()
        rows: List[Tuple[str, str, str]] = []
        modules = sorted(m for m in self.flop_counts if m != "Global" and m.count(".") + 1 <= depth)
        for module in ["Global", *modules]:
            ops = self.flop_counts[module]
            indent = " " * (0 if module == "Global" else module.count(".") + 1)
            rows.append((indent + module, _readable(sum(ops.values())), _share(sum(ops.values()), total)))
            rows += [(f"{indent} - {op}", _readable(n), _share(n, total)) for op, n in ops.items()]
        return _table(("Module", "FLOP", "% Total"), rows)


def _readable(n: int) -> str:
    """1234567 is "1.235M"."""
    power = min(max(0, (len(str(n)) - 1) // 3), 4)
    return f"{n / 1000 ** power:.3f}{['', 'K', 'M', 'B', 'T'][power]}"


def _share(n: int, total: int) -> str:
    return f"{n / total:.2%}" if total else "0.00%"


def _table(heading: Tuple[str, str, str], rows: List[Tuple[str, str, str]]) -> str:
    widths = [max(len(row[i]) for row in [heading, *rows]) for i in range(3)]
    lines = [heading, tuple("-" * w for w in widths), *rows]
    return "\n".join(f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in lines)
