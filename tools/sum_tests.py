#!/usr/bin/env python3
"""Adds up what `meson test` recorded in build folders and prints `N passed, N failed[, N skipped]`: each TAP case counts,
and a test program that failed beside its cases (a crash, a leak, a time-out) counts as one failure more. Of each failed
case the reason is printed, with the command that runs its program alone: `meson test` prints stderr, where a program that
speaks TAP says nothing.

usage: sum_tests.py BUILD...     status 1 when anything failed or nothing ran
"""
import json
import os
import shlex
import sys
import xml.etree.ElementTree as xml

LINES = 60  # of one program's reasons


def reasons(stdout):
    """The `not ok` lines of TAP, each with the diagnostics behind it."""
    out, wanted = [], False
    for line in stdout.splitlines():
        wanted = line.startswith("not ok") or wanted and line.startswith("#")
        if wanted:
            out.append(line)
    return out if len(out) <= LINES else out[:LINES] + [f"... {len(out) - LINES} lines more"]


def tell(test):
    """Why a program failed, where its stderr does not say so already, and how to run it."""
    lines = reasons(test.get("stdout") or "")
    if lines and not any(line.startswith("#") and line[1:].strip() and line[1:].strip() in (test.get("stderr") or "") for line in lines):
        print("\n".join("  " + line for line in lines))
    wanted = {k: v for k, v in test.get("env", {}).items() if k.startswith(("OPSCOPE", "PYTHONPATH", "LD_PRELOAD", "CMOCKA")) and os.environ.get(k) != v}
    print("  alone: " + " ".join([f"{k}={shlex.quote(v)}" for k, v in wanted.items()] + [shlex.quote(word) for word in test["command"]]))


passed = failed = skipped = 0
for build in sys.argv[1:]:
    logs = os.path.join(build, "meson-logs")
    failed_cases = {}
    for suite in xml.parse(os.path.join(logs, "testlog.junit.xml")).getroot().iter("testsuite"):
        for case in suite.iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                failed += 1
                name = suite.get("name").split(" / ")[-1].split(".", 1)[-1]
                failed_cases[name] = failed_cases.get(name, 0) + 1
                print(f"failed in {build}: {name}: {case.get('name')}")
            elif case.find("skipped") is not None:
                skipped += 1
            else:
                passed += 1
    with open(os.path.join(logs, "testlog.json")) as f:
        for line in f:
            test = json.loads(line)
            name = test["name"].split(" / ")[-1]
            empty = any(line.split("#")[0].strip() == "1..0" and "SKIP" not in line.upper() for line in (test.get("stdout") or "").splitlines())
            if test["result"] in ("OK", "SKIP", "EXPECTEDFAIL") and not empty:
                continue
            if not failed_cases.get(name):
                failed += 1
                print(f"failed in {build}: {name}: {'it has no tests' if empty else test['result']}")
            tell(test)

print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
sys.exit(1 if failed or not passed else 0)
