"""The pages of docs/questions: each has the same parts, fits a screen or two, and its Python runs and prints an answer. Notebooks are kept without outputs (test_notebooks.py runs them)."""
import contextlib
import io
import json
import os
import re
import tempfile

from support import ROOT, oracle

FOLDER = os.path.join(ROOT, "docs", "questions")
PARTS = ["Ask", "How to read it", "In the viewer", "In Python", "What it cannot tell"]
MOST_LINES = 70


def read(*path):
    with open(os.path.join(ROOT, "docs", *path), encoding="utf-8") as f:
        return f.read()


PAGES = {name[:-3]: read("questions", name) for name in sorted(os.listdir(FOLDER)) if name.endswith(".md")}


class Questions(oracle.Case):
    def test_parts(self):
        for name, text in PAGES.items():
            with self.subTest(page=name):
                self.assertRegex(text, r"\A# [^\n]+\?\n\n")
                self.assertEqual(re.findall(r"^## (.*)$", text, re.M), PARTS)
                self.assertLess(text.count("\n"), MOST_LINES)
                self.assertEqual(len(re.findall(r"^```python$", text, re.M)), 1)

    def test_index(self):
        """The index lists each page by its title, and no other."""
        listed = dict(re.findall(r"\[([^\]]+)\]\(questions/(\w+)\.md\)", read("questions.md")))
        self.assertEqual(listed, {re.match(r"# (.*)", text)[1]: name for name, text in PAGES.items()})

    def test_python(self):
        """A page about public traces needs these."""
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(os.path.join(ROOT, "tests"), os.path.join(folder, "tests"))
            os.symlink(oracle.DATA, os.path.join(folder, "traces"))
            for name, text in PAGES.items():
                code = re.search(r"^```python\n(.*?)^```$", text, re.M | re.S)[1]
                code = re.sub(r'"((?:tests|traces)/)', lambda m: f'"{folder}/{m[1]}', code)
                inputs = re.findall(r'load\("([^"]+)"', code)
                with self.subTest(page=name):
                    if not all(map(os.path.exists, inputs)):
                        self.skipTest(f"no {inputs}")
                    shown = io.StringIO()
                    with contextlib.redirect_stdout(shown):
                        exec(compile(code, name, "exec"), {})
                    self.assertRegex(shown.getvalue(), r"\d")

    def test_notebooks_have_no_outputs(self):
        folder = os.path.join(ROOT, "docs", "notebooks")
        for name in os.listdir(folder):
            with open(os.path.join(folder, name), encoding="utf-8") as f:
                for cell in json.load(f)["cells"]:
                    self.assertFalse(cell.get("outputs") or cell.get("execution_count"), name)


if __name__ == "__main__":
    oracle.main()
