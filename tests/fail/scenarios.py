"""What torture.py runs under faults: rows of scenarios, and the small inputs that they read."""
import dataclasses
import json
import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "oracle"))
import dldb_db  # noqa: E402
import nsys_db  # noqa: E402
import nvprof_db  # noqa: E402
import oracle  # noqa: E402
import test_counters  # noqa: E402
import test_provenance  # noqa: E402
import torch_trace  # noqa: E402
from segment import BASE, Segment  # noqa: E402

QUERY = "SELECT name, count(*), sum(dur_ns) FROM span GROUP BY 1 ORDER BY 1"
# {n}: another number in each question.
SERVED = ("state", "reports", "report/operators?limit={n}", "report/overview?limit={n}", "advise?limit={n}", "timeline", "timeline/whole", "timeline/tile?zoom=2&index=0",
          "timeline/find?text=mm", "export/chrome", "sql?query=SELECT+name,+count(*)+FROM+span+GROUP+BY+1+--{n}", "sql?query=SELECT+*+FROM+operators+--{n}")
REPORTED = ("training_gpu.json", "costs_gpu.json", "python_lines.json", "memory_view.json", "os_calls.json", "nsys.sqlite", "kept.opscope", "records.dict", "nvprof.sqlite", "markers.sql")


@dataclasses.dataclass
class Scenario:
    name: str
    args: list                    # of opscope; "IN/x": an input, "OUT/x": a file of the folder that each run gets anew
    copies: dict = dataclasses.field(default_factory=dict)  # input: place in OUT, for what a run changes
    classes: tuple = ()           # none: all of them
    quick: bool = True            # in the quick part
    inputs: tuple = ()            # to be tried one after another in place of "IN/?": the first for which the command works
    kind: str = "cli"             # or "serve", "load": the first request of a server; "python"


def capture(folder):
    s = Segment()
    s.push(7, "plain", BASE + 100)
    s.push(7, "aten::mm", BASE + 110, seq=5, op=12, sizes="[[2, 3], [3, 4]]")
    s.push(7, "aten::add", BASE + 120, seq=6, rest=", sizes = [[4], []], input_op_ids = [(1,0)]")
    for at in (130, 150, 200):
        s.pop(7, BASE + at)
    s.meta("command", "train.py")
    s.write(folder)


def graph(replay, folder):
    """A trace of a graph's launch, and the trace of its capture in a folder."""
    work = [("aten::mm", "gemm"), ("aten::add", "add"), ("aten::mm", "gemm"), ("aten::relu", "relu")]
    call = lambda name, at, **args: {"ph": "X", "cat": "cuda_runtime", "name": name, "pid": 1, "tid": 1, "ts": at, "dur": 0.5, "args": args}  # noqa: E731
    capture = [call("hipStreamBeginCapture", 1000), call("hipStreamEndCapture", 1100)]
    launch = [call("hipGraphLaunch", 5000, correlation=70)]
    for i, (op, kernel) in enumerate(work, 1):
        capture.append({"ph": "X", "cat": "cpu_op", "name": op, "pid": 1, "tid": 1, "ts": 1000 + 10 * i, "dur": 5, "args": {"External id": i, "Input Dims": [[2, 3]]}})
        capture.append(call("hipLaunchKernel", 1001 + 10 * i, correlation=i, kernel=kernel, **{"External id": i}))
        launch.append({"ph": "X", "cat": "kernel", "name": kernel, "pid": 0, "tid": 7, "ts": 5000 + 10 * i, "dur": 5, "args": {"correlation": 70, "device": 0, "stream": 7}})
    os.mkdir(folder)
    for path, events in ((replay, launch), (os.path.join(folder, "bs_1_rank0.json"), capture)):
        with open(path, "w") as f:
            f.write(json.dumps({"schemaVersion": 1, "traceEvents": events}))


def rank_of_two(path, rank):
    """The synthetic trace as that of one rank of two."""
    with open(oracle.synthetic("communication")) as f:
        doc = json.load(f)
    doc["distributedInfo"] = {"backend": "nccl", "rank": rank, "world_size": 2}
    with open(path, "w") as f:
        f.write(json.dumps(doc))


def make_inputs(folder):
    """One small input of each format."""
    at = lambda name: os.path.join(folder, name)  # noqa: E731
    for name in ("training_gpu", "costs_gpu", "memory_view", "python_lines", "os_calls"):
        shutil.copy(oracle.synthetic(name), at(name + ".json"))
    with open(oracle.synthetic("costs_gpu"), "rb") as f:
        with oracle.gzip.GzipFile(at("small.json.gz"), "wb", mtime=0) as out:
            out.write(f.read())
    shutil.copy(os.path.join(oracle.ROOT, "tests", "data", "torch214_cpu_resnet.json.gz"), at("threaded.json.gz"))
    nsys_db.make(at("nsys.sqlite"), nsys_db.sample())
    nvprof_db.make(at("nvprof.sqlite"), 18, nvprof_db.sample(), nvprof_db.STRINGS)
    dldb_db.make(at("dldb.sqlite"), dldb_db.sample())
    os.mkdir(at("capture"))
    capture(at("capture"))
    graphs = test_provenance.graphs()
    test_provenance.trace(graphs).save(at("compiled.json.gz"))
    test_counters.write(at("counted.json.gz"), at("counters.csv"), [("a", 8), ("b", 9)], [("b", 1), ("a", 2)])
    os.mkdir(at("torch_log"))
    with open(at("torch_log/a.log"), "w") as f:
        f.write(torch_trace.log(graphs))
    torch_trace.tlparse(graphs[1:], at("torch_log/parsed"))
    graph(at("replay.json"), at("captures"))
    os.mkdir(at("job"))
    for rank in (0, 1):
        rank_of_two(at(f"job/rank{rank}.json"), rank)
        os.makedirs(at(f"apart/{rank}"))
        rank_of_two(at(f"apart/{rank}/rank{rank}.json"), rank)
    subprocess.run([oracle.OPSCOPE, "import", at("training_gpu.json"), "-o", at("kept.opscope")], check=True, env={**os.environ, "SOURCE_DATE_EPOCH": "86400"})
    subprocess.run([oracle.OPSCOPE, "import", at("job"), "-o", at("job.opscope")], check=True)
    with open(at("rules"), "w") as f:
        f.write('KERNEL("my_kernel", COMM, NO)\n')
    with open(at("query"), "w") as f:
        f.write(QUERY + "\n")
    copied = {"real.sqlite": ("nsys", "2021.2_mordred", "report1.sqlite"), "records.dict": ("pyprof", "lm_nvprof", "expected_net.dict"),
              "markers.sql": ("pyprof", "lm_nvprof", "net.sql"), "real.nvvp": ("nvprof", "nccl_8gpu_v16.nvvp"), "real_dldb.sqlite": ("dlprof", "w_relu", "dlprof_dldb.sqlite"),
              "snapshot.pickle": ("more", "memory_snapshot", "cs336_tiny.pickle")}
    for name, parts in copied.items():
        source = os.path.join(oracle.DATA, *parts)
        if os.path.exists(source):
            shutil.copy(source, at(name))
            os.chmod(at(name), 0o644)


def rows():
    formats = {"kineto": "training_gpu.json", "gzip": "small.json.gz", "gzip-threaded": "threaded.json.gz", "nsys": "nsys.sqlite", "nvprof": "nvprof.sqlite", "dldb": "dldb.sqlite",
               "pyprof-dict": "records.dict", "opscope": "kept.opscope", "capture": "capture", "directory": "job", "nsys-real": "real.sqlite", "nvprof-real": "real.nvvp",
               "nvprof-markers": "markers.sql", "dldb-real": "real_dldb.sqlite"}
    for name, path in formats.items():
        more = ["--rank=1"] if name == "directory" else []
        yield Scenario("read-" + name, ["report", "operators", "IN/" + path, "--format=csv", *more], quick="-real" not in name)
    yield Scenario("read-memory-snapshot", ["report", "leaks", "IN/snapshot.pickle", "--format=csv"])
    reports = json.loads(oracle.run("report", "--format=json")[1])
    for report in sorted(row[0] for row in reports["rows"]):
        yield Scenario("report-" + report, ["report", report, "IN/?"], inputs=REPORTED, quick=report in ("layers", "roofline"), classes=("malloc",))
    yield Scenario("report-provenance", ["report", "compile", "IN/compiled.json.gz", "--provenance=IN/torch_log", "--format=csv"])
    yield Scenario("report-counters", ["report", "counters", "IN/counted.json.gz", "--counters=IN/counters.csv", "--format=csv"])
    yield Scenario("report-rules", ["report", "kernels", "IN/costs_gpu.json", "--kernel-rules=IN/rules"])
    yield Scenario("report-capture", ["report", "op-types", "IN/replay.json", "--capture=IN/captures", "--format=csv"])
    yield Scenario("report-html", ["report", "overview", "IN/costs_gpu.json", "-o", "OUT/page.html"])
    yield Scenario("report-opscope", ["report", "overview", "IN/kept.opscope", "--format=json"])
    yield Scenario("info", ["info", "IN/costs_gpu.json"])
    yield Scenario("look", ["look", "IN/costs_gpu.json"])
    yield Scenario("first-look", ["IN/costs_gpu.json"], classes=("open", "read", "stat"))
    yield Scenario("advise", ["advise", "IN/costs_gpu.json"])
    yield Scenario("sql", ["sql", "IN/costs_gpu.json", QUERY])
    yield Scenario("sql-report", ["sql", "IN/costs_gpu.json", "SELECT * FROM operators ORDER BY 1, 2"])
    yield Scenario("import", ["import", "IN/costs_gpu.json", "-o", "OUT/kept.opscope"])
    yield Scenario("import-over", ["import", "IN/costs_gpu.json", "-o", "OUT/kept.opscope"], copies={"training_gpu.json": "kept.opscope"})
    # In folders of their own: advice about one rank names the files beside it, and leaves them out where the folder cannot be read.
    yield Scenario("import-job", ["import", "IN/apart/0/rank0.json", "IN/apart/1/rank1.json", "-o", "OUT/kept.opscope"])
    yield Scenario("report-kept-job", ["report", "ranks", "IN/job.opscope", "--format=csv"])
    yield Scenario("advise-kept-job", ["advise", "IN/job.opscope"], classes=("malloc", "read"))
    yield Scenario("import-nsys", ["import", "IN/nsys.sqlite", "-o", "OUT/kept.opscope"], quick=False)
    yield Scenario("aggregate", ["aggregate", "OUT/kept.opscope", "--steps=1"], copies={"kept.opscope": "kept.opscope"})
    yield Scenario("aggregate-rules", ["aggregate", "OUT/kept.opscope", "--kernel-rules=IN/rules"], copies={"kept.opscope": "kept.opscope"}, classes=("open", "read"))
    yield Scenario("aggregate-delete", ["aggregate", "OUT/kept.opscope", "--delete=2"], copies={"two.opscope": "kept.opscope"})
    for name, path in (("chrome", "costs_gpu.json"), ("chrome-list", "costs_gpu.json"), ("flamegraph", "python_lines.json"), ("memory-timeline", "memory_view.json"),
                       ("pyprof-dict", "records.dict"), ("stacks", "python_lines.json")):
        yield Scenario("export-" + name, ["export", name, "IN/" + path, "-o", "OUT/file"], quick=name in ("chrome", "stacks"))
    yield Scenario("export-gzip", ["export", "chrome", "IN/costs_gpu.json", "-o", "OUT/file.gz"])
    yield Scenario("pyprof-parse", ["pyprof-parse", "IN/markers.sql"], quick=False)
    yield Scenario("pyprof-prof", ["pyprof-prof", "IN/records.dict"], quick=False)
    yield Scenario("help", ["report", "operators", "--help"], classes=("malloc",), quick=False)
    yield Scenario("serve", ["serve", "-p", "0", "IN/costs_gpu.json"], kind="serve", classes=("malloc",))
    yield Scenario("serve-opscope", ["serve", "-p", "0", "IN/kept.opscope"], kind="serve", classes=("malloc",), quick=False)
    yield Scenario("serve-load", ["serve", "-p", "0", "IN/costs_gpu.json"], kind="load", classes=("malloc", "read", "open"))
    yield Scenario("python", ["IN/costs_gpu.json"], kind="python", classes=("malloc", "read", "open"))
    yield Scenario("python-nsys", ["IN/nsys.sqlite"], kind="python", classes=("malloc", "read", "open"), quick=False)
