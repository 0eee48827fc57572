#!/usr/bin/env python3
"""Every file of the tree is laid out as .editorconfig says; C has the braces that CONTRIBUTING.md states."""
import configparser
import fnmatch
import os
import re
import subprocess
import tokenize
import unittest

import house

BINARY = (".png", ".xz", ".gz")


def files():
    """What git has, or in a tree without git all but what is built."""
    listed = subprocess.run(["git", "-C", house.ROOT, "ls-files", "-z"], capture_output=True)
    if listed.returncode == 0:
        return [f for f in listed.stdout.decode().split("\0") if f and os.path.isfile(os.path.join(house.ROOT, f))]
    raise unittest.SkipTest("no git, which says which files are the tree's")


def alternatives(pattern):
    """"*.{c,h}" -> "*.c", "*.h"."""
    brace = re.search(r"\{([^{}]*)\}", pattern)
    if not brace:
        return [pattern]
    return [p for word in brace[1].split(",") for p in alternatives(pattern[: brace.start()] + word + pattern[brace.end():])]


def matches(path, pattern):
    return any(fnmatch.fnmatch(path if "/" in p else os.path.basename(path), p.replace("**", "*")) for p in alternatives(pattern))


class Layout(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        config = configparser.ConfigParser()
        config.read_string("[DEFAULT]\n" + house.read(".editorconfig"))
        cls.sections = [(name, dict(config[name])) for name in config.sections()]
        cls.files = [f for f in files() if not f.endswith(BINARY)]

    def rules(self, path):
        rules = {}
        for pattern, values in self.sections:
            if matches(path, pattern):
                rules.update(values)
        return rules

    def each(self, rule, value):
        """(path, bytes) of all files that have this rule."""
        for path in self.files:
            if self.rules(path).get(rule) == value:
                with open(os.path.join(house.ROOT, path), "rb") as f:
                    yield path, f.read()

    def lines(self, rule, value, pattern):
        """Where a line of such a file matches."""
        found = re.compile(pattern)
        return [f"{path}:{n}" for path, text in self.each(rule, value) for n, line in enumerate(text.split(b"\n"), 1) if found.search(line)]

    def test_every_file_has_rules(self):
        self.assertGreater(len(self.files), 1000)
        self.assertEqual(self.rules("src/cli/main.c")["indent_style"], "tab")
        self.assertEqual(self.rules("tests/cli/x.stdout")["trim_trailing_whitespace"], "unset")
        self.assertEqual(self.rules("fuzz/corpus/json/x")["charset"], "unset")

    def test_text(self):
        for path, text in self.each("charset", "utf-8"):
            with self.subTest(path):
                text.decode("utf-8")
                self.assertNotIn(b"\r", text)

    def test_final_newline(self):
        self.assertEqual([p for p, text in self.each("insert_final_newline", "true") if text and not text.endswith(b"\n")], [])

    def test_trailing_blanks(self):
        self.assertEqual(self.lines("trim_trailing_whitespace", "true", rb"[ \t]$"), [])

    def test_tabs_stand_before_spaces(self):
        self.assertEqual(self.lines("indent_style", "tab", rb"^\t* +\t"), [])

    def test_python_indents_by_four(self):
        wrong = []
        for path in self.files:
            if path.endswith((".py", ".pyi")):
                with tokenize.open(os.path.join(house.ROOT, path)) as f:
                    wrong += [f"{path}:{t.start[0]}" for t in tokenize.generate_tokens(f.readline) if t.type == tokenize.INDENT and (len(t.string) % 4 or "\t" in t.string)]
        self.assertEqual(wrong, [])

    def test_braces_of_functions(self):
        """The body of a function begins on a line of its own; other braces end theirs."""
        function = re.compile(r"^(?!(?:struct|enum|union|typedef|#|\}|else|do)\b)[A-Za-z_][\w *]*\([^;{}]*\)\s*\{$")
        block = re.compile(r"^\s+(?:if|for|while|switch)\b[^;]*\)$\n\s*\{$", re.M)
        wrong = []
        for path in self.files:
            if path.endswith((".c", ".h")) and path.startswith(("src/", "collect/", "python/", "fuzz/", "tests/")):
                text = house.read(path)
                wrong += [f"{path}: {line}" for line in text.split("\n") if function.match(line)]
                wrong += [f"{path}: {m[0]}" for m in block.finditer(text)]
        self.assertEqual(wrong, [])


class Tests(unittest.TestCase):
    def test_python_tests_speak_tap(self):
        """meson takes a test that prints no TAP for a skipped one, whether it passes or not."""
        folder = os.path.join(house.ROOT, "tests", "oracle")
        for name in sorted(os.listdir(folder)):
            if name.startswith("test_") and name.endswith(".py"):
                with self.subTest(name):
                    self.assertTrue(re.search(r"\b(?<!unittest\.)main\(", house.read(os.path.join("tests", "oracle", name)), re.M), "no line of main()")


if __name__ == "__main__":
    house.main()
