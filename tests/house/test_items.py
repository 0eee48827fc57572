#!/usr/bin/env python3
"""docs/items.md is whole: each item once, a state that there is, counts that are those of the rows, and tests that are there."""
import os
import re
import unittest

import house

ITEMS = {"A": 39, "B": 32, "C": 44, "D": 37, "E": 39}
STATES = ("works", "works, differs", "partly", "no", "not verified")


def page():
    return house.read("docs", "items.md")


def rows():
    """(item, what, state, tests) of each row of the tables of items."""
    return re.findall(r"(?m)^\| ([A-Z]-\d\d) \| (.+?) \| (.+?) \| (.*) \|$", page())


def state(text):
    """(the state, what is said of it)"""
    kind, _, why = text.partition(": ")
    return kind, why


def named():
    """(file, case) of all tests on the page."""
    return re.findall(r"`((?:python/tests|oracle|unit|web|cli|house)/[\w./]+?\.(?:py|c|mjs|sh))(?: ([^`]+))?`", page())


def has(path, case, text):
    """Whether a file with this text has the case."""
    if path.endswith(".py"):
        of, _, name = case.partition(".")
        found = re.search(rf"(?ms)^class {of}\b.*?(?=^class |\Z)", text)
        return bool(found and re.search(rf"(?m)^    def {name}\(", found[0]))
    if path.endswith(".c"):
        return f"cmocka_unit_test({case})" in text
    if path.endswith(".mjs"):
        if os.path.basename(path) == "test_pages.mjs":  # all pages of each input, in two colours
            name, _, theme = case.partition(", ")
            return theme in ("light", "dark") and re.search(rf"(?m)^  {name}: \{{", house.read("tests", "web", "harness.mjs")) is not None
        return f'["{case}"' in text or case.startswith("tables as reports: ") and "tables as reports: " in text
    return not case


class Items(unittest.TestCase):
    def test_each_once(self):
        self.assertEqual([r[0] for r in rows()], [f"{letter}-{n:02}" for letter, last in ITEMS.items() for n in range(1, last + 1)])

    def test_states(self):
        for item, what, text, tests in rows():
            with self.subTest(item):
                kind, why = state(text)
                self.assertIn(kind, STATES)
                self.assertEqual(bool(why), kind != "works", "what differs, or is missing")
                self.assertTrue(what and tests)

    def test_counts(self):
        counted = {s: int(n) for s, n in re.findall(r"(?m)^\| ([a-z, ]+?) \| (\d+) \|$", page())}
        kinds = [state(r[2])[0] for r in rows()]
        self.assertEqual(counted, {s: kinds.count(s) for s in STATES})

    def test_tests_are_there(self):
        self.assertGreater(len(named()), 400)
        missing, texts = [], {}
        for path, case in named():
            parts = path.split("/") if path.startswith("python/") else ["tests", *path.split("/")]
            if not os.path.exists(os.path.join(house.ROOT, *parts)):
                missing.append(path)
                continue
            text = texts.setdefault(path, house.read(*parts))
            if not has(path, case, text):
                missing.append(f"{path} {case}")
        self.assertEqual(missing, [])

    def test_nothing_else_stands_among_the_tests(self):
        for item, _, _, tests in rows():
            with self.subTest(item):
                self.assertEqual([t for t in tests.split(", `") if not t.endswith("`")], [])
                self.assertEqual(len(re.findall(r"`[^`]+`", tests)), len(re.findall(r"`(?:python/tests|oracle|unit|web|cli|house)/[^`]+`", tests)))


if __name__ == "__main__":
    house.main()
