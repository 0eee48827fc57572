#!/usr/bin/env python3
"""What the pages for readers of the tree point to is there."""
import os
import re
import subprocess
import unittest

import house

FOR_WORKERS = ("CONTRIBUTING.md", "tests/README.md")


def pages():
    """All that git has; without git those of the folders that have pages."""
    listed = subprocess.run(["git", "-C", house.ROOT, "ls-files", "*.md"], capture_output=True, text=True)
    return listed.stdout.split() if listed.returncode == 0 else ["README.md", "CONTRIBUTING.md", "tests/README.md", "docs/design.md"]


def marks(page):
    """What a link can name in a page: its headings, as GitHub names them."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", house.read(page), flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", h).strip().lower()).replace(" ", "-") for h in headings}


class Pages(unittest.TestCase):
    def test_links(self):
        for page in pages():
            for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", house.read(page)):
                if not re.match(r"[a-z]+:", target):
                    with self.subTest(page=page, target=target):
                        self.assertTrue(os.path.exists(os.path.join(house.ROOT, os.path.dirname(page), target)))

    def test_marks(self):
        for page in pages():
            for target, mark in re.findall(r"\]\(([^)#\s]*)#([^)]*)\)", house.read(page)):
                other = os.path.normpath(os.path.join(os.path.dirname(page), target)) if target else page
                if other.endswith(".md") and not re.match(r"[a-z]+:", target):
                    with self.subTest(page=page, target=f"{target}#{mark}"):
                        self.assertIn(mark, marks(other))

    def test_paths(self):
        """NAME, TARGET, TOOL: what the reader puts there."""
        for page in FOR_WORKERS:
            for path in set(re.findall(r"`((?:src|web|tests|tools|fuzz|docs)/[\w./-]+)`", house.read(page))):
                if not re.search(r"\b(NAME|TARGET|TOOL)\b", path):
                    with self.subTest(page=page, path=path):
                        of = re.match(r"src/predecessors/(\w+)/", path)
                        if of and house.absent(of[1]):
                            self.skipTest(house.absent(of[1]))
                        self.assertTrue(os.path.exists(os.path.join(house.ROOT, path)))

    def test_reports(self):
        """A page that names a report names one that there is."""
        there = set(re.findall(r"^## ([\w-]+)$", house.read("docs", "reports.md"), re.M))
        self.assertGreater(len(there), 50)
        for page in pages():
            named = re.findall(r"`opscope report ([a-z][\w-]*)", house.read(page))
            self.assertLessEqual(set(named), there, page)

    def test_lists(self):
        """A word in `LIST`, `FILE`: the file has the list."""
        named = re.findall(r"a word in `(\w+)`, `([\w/.]+)`", house.read("CONTRIBUTING.md"))
        named += [(name, "tests/meson.build") for name in re.findall(r"a word in `(\w+)` \|", house.read("tests/README.md"))]
        self.assertGreater(len(named), 8)
        for name, path in named:
            with self.subTest(list=name):
                self.assertRegex(house.read(path), rf"(?m)^{name} = \[$")

    def test_every_folder_of_tests_is_explained(self):
        text = house.read("tests", "README.md")
        for folder in sorted(os.listdir(os.path.join(house.ROOT, "tests"))):
            if os.path.isdir(os.path.join(house.ROOT, "tests", folder)) and not folder.startswith((".", "_")):
                self.assertIn(f"\n| `{folder}/` | ", text)


if __name__ == "__main__":
    house.main()
