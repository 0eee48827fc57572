#!/usr/bin/env python3
"""Adds up what `meson test` recorded in build folders and prints `N passed, N failed[, N skipped]`: each TAP case counts,
and a test program that failed beside its cases (a crash, a leak, a time-out) counts as one failure more.

usage: sum_tests.py BUILD...     status 1 when anything failed or nothing ran
"""
import json
import os
import sys
import xml.etree.ElementTree as xml

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
            if test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL") and not failed_cases.get(name):
                failed += 1
                print(f"failed in {build}: {name}: {test['result']}")

print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
sys.exit(1 if failed or not passed else 0)
