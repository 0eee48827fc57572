#!/usr/bin/env python3
"""docs/licences.md names all that a built opscope holds of others, and the metadata of every part the project's own licence."""
import json
import re
import unittest

import house

OF_THE_C_LIBRARY = {"threads", "m", "dl"}


def rows(heading):
    """First word of each row of the tables under a heading -> the rest of the row."""
    text = house.read("docs", "licences.md").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return {name: rest for name, rest in re.findall(r"^\| ([\w/@-]+) \| (.*) \|$", text, re.M) if name not in ("package", "library")}


class Licences(unittest.TestCase):
    def test_ours(self):
        self.assertIn("TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION", house.read("LICENSE"))
        self.assertIn("The opscope authors", house.read("NOTICE"))
        self.assertEqual(json.loads(house.read("web", "package.json"))["license"], "Apache-2.0")
        self.assertIn("\n  license: 'Apache-2.0',\n", house.read("meson.build"))
        self.assertIn('\nlicense = "Apache-2.0"\n', house.read("pyproject.toml"))

    def test_packages_of_the_viewer(self):
        """What npm brings for the pages, whatever brings it, with the licence that its own package states."""
        listed = rows("In the pages of the viewer")
        direct = json.loads(house.read("web", "package.json"))["dependencies"]
        brought = {path.removeprefix("node_modules/"): p for path, p in json.loads(house.read("web", "package-lock.json"))["packages"].items() if path and not p.get("dev")}
        self.assertLessEqual(set(direct), set(brought))
        for name, package in brought.items():
            self.assertEqual(listed.get(name, "not listed").split(" | ")[0], package["license"], name)
        self.assertEqual(set(listed) - set(brought), {"d3"})  # inside echarts

    def test_texts(self):
        """A licence that wants its text to go with the copies has it here."""
        text = house.read("docs", "licences.md").split("\n## The texts\n")[1]
        for name, rest in rows("In the pages of the viewer").items():
            self.assertRegex(text, rf"(?m)^(### )?{name}\b")
            owner = rest.split(" | ")[1]
            if not rest.startswith("Apache"):
                self.assertIn(re.sub(r"^[\d-]+ ", "", owner), re.sub(r"\s+", " ", text), name)

    def test_libraries(self):
        listed = set(rows("Linked in"))
        build = "".join(house.read(*path) for path in (("meson.build",), ("src", "meson.build"), ("src", "serve", "meson.build")))
        used = set(re.findall(r"dependency\('([\w-]+)'", build)) | {"lib" + n for n in re.findall(r"find_library\('([\w-]+)'", build) if n not in OF_THE_C_LIBRARY}
        self.assertEqual(listed, used - OF_THE_C_LIBRARY)

    def test_tools(self):
        text = house.read("docs", "licences.md").split("\n## Of the build and the tests alone\n")[1].split("\n## ")[0]
        tests = re.findall(r"^\w+ = dependency\('([\w-]+)'", house.read("tests", "meson.build"), re.M)
        for name in [*json.loads(house.read("web", "package.json"))["devDependencies"], *tests]:
            self.assertIn(name, text)


if __name__ == "__main__":
    house.main()
