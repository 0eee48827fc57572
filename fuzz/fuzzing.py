"""What fuzz/run, fuzz/nightly and fuzz/grow share: the build, the targets with their corpora, and how one target is run.

A target starts from fuzz/corpus, which is small and of our own making, and from BUILD/corpus/TARGET, where it leaves what it finds
and fuzz/grow what it cut from real files. A finding is left in BUILD/found-TARGET-*.
"""
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.path.join(ROOT, "build-fuzz")
LONGEST = 64 << 10
OPTIONS = ["-Dfuzz=true", "-Dcheck=true", "-Db_sanitize=address,undefined", "-Doptimization=1", "-Db_lundef=false",
           "-Dtests=disabled", "-Dpython=disabled", "-Dviewer=disabled", "-Dserve=disabled"]
# entropic=0: which input to mutate next is drawn evenly. libFuzzer's weights by rare features cost far more than reading a file: of 165 000 edges all of a
# young corpus's are rare, and 95 % of the time went into counting them.
SETTINGS = ["-entropic=0", f"-max_len={LONGEST}", "-rss_limit_mb=2048", "-timeout=10", "-print_final_stats=1"]


def setup(folder=BUILD):
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        subprocess.run(["meson", "setup", folder, ROOT, *OPTIONS], check=True, stdout=subprocess.DEVNULL, env={**os.environ, "CC": "clang"})


def build(*what):
    """All targets unless some of the build are named."""
    setup()
    subprocess.run(["ninja", "-C", BUILD, "--quiet", *(what or ["fuzz_programs"])], check=True)


def targets(folder=BUILD):
    """{target: [folder of fuzz/corpus, ...]}; the list is made by fuzz/meson.build, and is there once the folder is set up."""
    with open(os.path.join(folder, "fuzz", "targets")) as f:
        return {line.split()[0]: line.split()[1:] for line in f if line.strip()}


def program(folder, target):
    return os.path.join(folder, "fuzz", "fuzz_" + target)


def own_corpus(folder, target):
    path = os.path.join(folder, "corpus", target)
    os.makedirs(path, exist_ok=True)
    return path


def seeds(folders):
    return [os.path.join(ROOT, "fuzz", "corpus", name) for name in folders]


def command(folder, target, folders, *more, corpus=None):
    """`corpus`: where new inputs go; None = the target's own."""
    return [program(folder, target), *SETTINGS, "-artifact_prefix=" + os.path.join(folder, f"found-{target}-"), *more,
            corpus or own_corpus(folder, target), *seeds(folders)]


def figures(log):
    """What libFuzzer says at its end, as {"executions": ..., "edges": ..., "features": ..., "new": ...}; 0 where it did not come so far."""
    def last(pattern):
        found = re.findall(pattern, log)
        return int(found[-1]) if found else 0
    return {"executions": last(r"number_of_executed_units: (\d+)") or last(r"\n#(\d+)"), "edges": last(r"cov: (\d+)"), "features": last(r"ft: (\d+)"),
            "new": last(r"new_units_added: +(\d+)")}
