"""More traces with known problems, as in labelled.py: of code that torch.compile made, of its compiler, and of calls that it had to break up."""
import contextlib

from labelled import A100, TENSOR_CORE, Trace, case

TRITON = "triton_poi_fused_add_mul_0"
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
GRAPH = "## Call CompiledFxGraph fal4xpiah2v6blbfmwwonu52dvevbsmlh743q5tkclrt4gcqpzea ##"


def gpus(n):
    return Trace(*(dict(A100, id=i) for i in range(n)))


def load(t, us):
    if us:
        with t.range(LOADER, us=us):
            pass


# Compilation.

def compile_frame(t, us, stacks=False):
    """The ranges that torch.profiler has of it, with the frames of the compiler if it recorded stacks."""
    with t.frame("torch/_dynamo/convert_frame.py(1350): __call__") if stacks else contextlib.nullcontext():
        with t.range("_compile.compile_inner (dynamo_timed)", us=us // 4):
            with t.range("compile_fx_inner (dynamo_timed)", us=us - us // 4):
                pass


def graph(t, us=2000, device=0):
    with t.range(GRAPH, us=2):
        with t.op(TRITON, 5):
            t.kernel(us, TRITON, device=device)


@contextlib.contextmanager
def compiled(t, number="0/0", us=2000, device=0, graphs=True, body=None):
    """A compiled frame: its guards, its graph, and what is inside. `body`: the function that it runs."""
    t.simple("TorchDynamo Cache Lookup", 10)
    with t.op(f"Torch-Compiled Region: {number}", 5), t.frame(body) if body else contextlib.nullcontext():
        if graphs:
            graph(t, us, device)
        else:
            with t.op(TRITON, 5):
                t.kernel(us, TRITON, device=device)
        yield


def compiling(us, steps=True, when=(1, 2), numbers=("0/1", "0/2"), loader=0, n_gpus=1, beside=0, stacks=False, before=False, fill=20000):
    """Steps in some of which the compiler runs while the GPU is empty. `beside`: GPU work queued meanwhile. `before`: it runs before the steps."""
    t = gpus(n_gpus)
    if before:
        compile_frame(t, us, stacks)
    for n in range(1, 3):
        with t.step(n) if steps else t.range("round"):
            load(t, loader)
            for device in range(n_gpus):
                with t.op("aten::mm", 10):
                    t.kernel(fill + 1000 * n * (not steps), TENSOR_CORE, device=device)
            t.now = max(t.free.values())
            if beside:
                t.busy(beside)
            if n in when and not before:
                compile_frame(t, us, stacks)
            with compiled(t, numbers[n - 1]):
                pass
            t.drain()
    return t


@case("recompiles", "gpu-starvation")
def recompiles_in_each_step():
    return compiling(10000)


@case("recompiles", "gpu-starvation")
def recompiles_in_one_step():
    """With the compiler's frames, inside which its ranges are: 12 ms, once."""
    return compiling(12000, when=(2,), stacks=True)


@case("recompiles", "gpu-starvation", "dataloader-bound")
def recompiles_and_loader():
    return compiling(10000, loader=8000)


@case("recompiles", "gpu-starvation")
def recompiles_without_steps():
    return compiling(10000, steps=False)


@case("recompiles", "gpu-starvation")
def recompiles_beside_two_gpus():
    return compiling(10000, n_gpus=2)


@case(about="recompiles")
def without_recompiles_while_the_gpu_waits():
    """The compiler runs as long, but the GPU has work."""
    return compiling(10000, beside=15000)


@case(about="recompiles")
def without_recompiles_in_the_steps():
    """The names tell that code was compiled again, before the steps."""
    return compiling(10000, before=True)


@case(about="recompiles")
def without_long_recompiles():
    """Frames that the compiler leaves alone."""
    return compiling(400)


@case("recompiles")
def recompiles_that_compare_kernels():
    """The compiler runs candidates on the GPU: 9 ms of its 10."""
    t = Trace()
    for _ in t.steps():
        t.busy(20000)
        t.now = max(t.free.values())
        with t.range("_compile.compile_inner (dynamo_timed)", us=500):
            t.launch("CachingAutotuner", 9000, "triton_mm_candidate")
            t.sync()
        with compiled(t):
            pass
    return t


@case(about="recompiles")
def without_compilation_of_code_from_the_cache():
    """Frames of the module that compiles, through which cached code is called."""
    t = Trace()
    for _ in t.steps(fill=40000):
        t.now = max(t.free.values())
        with t.frame("torch/_inductor/codecache.py(906): __call__", 1000), t.frame("torch/_inductor/codecache.py(934): _run_from_cache", 1000):
            t.kernel(20000, TRITON)
    return t


@case("recompiles", "first-iteration", "gpu-starvation")
def first_step_compiles():
    """60 ms of the first of 4 steps, with the phases inside."""
    t = Trace()
    for n in t.steps(4):
        if n == 1:
            compile_frame(t, 60000)
        with compiled(t):
            t.busy(30000)
    return t


# Graph breaks.

def eager(t, us, host, device=0):
    """What is between two graphs: ops with a small kernel, and the host's own time."""
    for _ in range(4):
        with t.op("aten::add", host):
            t.kernel(us, device=device)


def nested(t, device=0, stacks=False, graphs=True, host=1000, us=200):
    """model.forward is left at line 12 and goes on as another compiled frame, inside the first."""
    with t.frame("torch/_dynamo/eval_frame.py(736): compile_wrapper") if stacks else contextlib.nullcontext():
        with compiled(t, "0/0", device=device, graphs=graphs, body="model.py(9): forward" if stacks else None):
            t.now = max(t.now, t.free[device, 7])
            eager(t, us, host, device)
            with compiled(t, "1/0", device=device, graphs=graphs, body="model.py(9): torch_dynamo_resume_in_forward_at_12" if stacks else None):
                pass


def broken(steps=True, loader=0, n_gpus=1, fill=20000, before=False, **how):
    t = gpus(n_gpus)
    if before:
        nested(t, **how)
        t.now = max(t.free.values()) + 100
    for n in range(1, 3):
        with t.step(n) if steps else t.range("round"):
            load(t, loader)
            for device in range(n_gpus):
                with t.op("aten::mm", 10):
                    t.kernel(fill + 700 * n * (not steps) + 6000 * device, TENSOR_CORE, device=device)
            if not before:
                nested(t, **how)
            t.drain()
    return t


@case("graph-breaks", "gpu-starvation")
def broken_call():
    """Per step 4 ops of 1 ms, whose kernels of 0.2 ms run while the next one is prepared."""
    return broken()


@case("graph-breaks", "gpu-starvation")
def broken_call_with_frames():
    return broken(stacks=True)


@case("graph-breaks", "gpu-starvation", "dataloader-bound")
def broken_call_and_loader():
    return broken(loader=8000)


@case("graph-breaks", "recompiles", "gpu-starvation")
def broken_call_and_recompiles():
    """Two causes, each by itself."""
    t = Trace()
    for n in t.steps():
        t.busy(20000)
        t.now = max(t.free.values())
        compile_frame(t, 6000)
        nested(t)
    return t


@case("graph-breaks", "gpu-starvation")
def broken_call_without_steps():
    return broken(steps=False)


@case("graph-breaks", "gpu-starvation")
def broken_calls_of_two_gpus():
    """GPU 1 computes while GPU 0 waits."""
    return broken(n_gpus=2)


@case("graph-breaks")
def broken_call_with_long_eager_ops():
    """The host does not hold up the GPU, but 4 x 2 ms of eager kernels stand between the graphs."""
    return broken(host=50, us=2000)


@case(about="graph-breaks")
def without_broken_calls_in_the_steps():
    return broken(before=True, fill=40000)


@case(about="graph-breaks")
def without_cost_of_breaks():
    return broken(host=10, us=10)


@case(about="graph-breaks")
def without_broken_calls():
    """Two functions that were compiled, each by itself, with eager ops between them: other frames of torch.compile."""
    t = Trace()
    for _ in t.steps(fill=20000):
        for number in ("0/0", "1/0"):
            with t.frame("torch/_dynamo/eval_frame.py(736): compile_wrapper"):
                with compiled(t, number):
                    pass
            eager(t, 200, 10)
    return t


@case("gpu-starvation", about=("graph-breaks", "compile-wrapper"))
def without_graphs_of_broken_calls():
    """Nothing says which ops are of a graph: it is not applicable."""
    return broken(graphs=False, host=2000)


@case("gpu-starvation", about="graph-breaks")
def without_frames_of_several_calls():
    """Compiled frames one after the other, and nothing says whether one function called them: it is not applicable."""
    t = Trace()
    for _ in t.steps(fill=20000):
        t.now = max(t.free.values())
        for number in ("0/0", "1/0"):
            with compiled(t, number):
                pass
            t.now = max(t.free.values())
            eager(t, 200, 1000)
    return t


@case("graph-breaks", "gpu-starvation")
def frames_of_one_call():
    """A function that Dynamo gave up as a whole, in a loop; what it calls is compiled, frame by frame."""
    t = Trace()
    for _ in t.steps(fill=20000):
        with t.frame("torch/_dynamo/eval_frame.py(736): compile_wrapper"), t.frame("model.py(20): forward"):
            for i in range(3):
                with compiled(t, "1/0"):
                    pass
                t.now = max(t.free.values())
                if i < 2:
                    eager(t, 200, 600)
    return t


@case("graph-breaks", "gpu-starvation")
def broken_call_and_backward():
    """The graphs' backward passes run one after the other, with 3 ms of the host between them."""
    t = Trace()
    for n in t.steps():
        t.busy(20000)
        t.now = max(t.free.values())
        t.simple("TorchDynamo Cache Lookup", 10)
        with t.op("Torch-Compiled Region: 0/0", 5):
            with t.op("CompiledFunction", 5, Sequence_number=2 * n, Fwd_thread_id=0):
                graph(t)
            t.now = max(t.free.values())
            eager(t, 200, 600)
            t.simple("TorchDynamo Cache Lookup", 10)
            with t.op("Torch-Compiled Region: 1/0", 5):
                with t.op("CompiledFunction", 5, Sequence_number=2 * n + 1, Fwd_thread_id=0):
                    graph(t)
        t.now, t.thread = max(t.free.values()), 2
        for k in (1, 0):
            with t.op("autograd::engine::evaluate_function: CompiledFunctionBackward", 2, Sequence_number=2 * n + k, Fwd_thread_id=1):
                with t.op("CompiledFunctionBackward", 5, Sequence_number=2 * n + k, Fwd_thread_id=1):
                    graph(t)
            if k:
                t.now = max(t.free.values())
                with t.op("autograd::engine::evaluate_function: AddBackward0", 3000):
                    t.kernel(100)
        t.thread = 1
    return t
