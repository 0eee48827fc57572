#!/usr/bin/env python3
"""The manual has every command and option that the program has, and is sound; shells complete what the program takes."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

import house
import oracle

FOLDER = os.path.join(os.environ.get("OPSCOPE_BUILD", os.path.join(house.ROOT, "build")), "tools")
PLAIN = {"ARGP_HELP_FMT": "", "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}


def needed(tool):
    if not shutil.which(tool):
        raise unittest.SkipTest(f"no {tool} here")
    return tool


def said(*args):
    status, out, err = oracle.run(*args)
    assert status == 0, err
    return out.decode()


def commands():
    listed = said("--help").split("\nAn INPUT")[0]
    return re.findall(r"(?m)^  (?!help)([a-z][a-z-]*) ", listed)


def page(command):
    """The path of a command's page, and whether the command is a program of its own."""
    own = os.path.join(FOLDER, f"{command}.1")
    return (own, True) if os.path.exists(own) else (oracle.built(os.path.join(FOLDER, f"opscope-{command}.1"), "OPSCOPE_BUILD"), False)


def words(path):
    """The text of a page: roff without its escapes."""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for escape, plain in ((r"\:", ""), (r"\-", "-"), (r"\(aq", "'"), (r"\(ha", "^"), (r"\(ti", "~"), (r"\e", "\\"), (r"\&", "")):
        text = text.replace(escape, plain)
    return re.sub(r"\\f[BIR]", "", text)


def options(command):
    """As --help prints them: "-o", "--format"."""
    lines = re.findall(r"(?m)^  (?:  )?(?:    )?(-.*)$", said(command, "--help"))
    return {name for line in lines for name in re.findall(r"(?:^|, )(-\w|--[\w-]+)", line.split("   ")[0])}


class Manual(oracle.Case):
    def test_every_command_and_option(self):
        general = words(oracle.built(os.path.join(FOLDER, "opscope.1"), "OPSCOPE_BUILD"))
        for command in commands():
            path, own = page(command)
            with self.subTest(command):
                self.assertIn(f"\n{os.path.basename(path)[:-2]}(1)\n", general)
                text, has = words(path), options(command)
                self.assertIn("--help", has)
                for name in has:
                    self.assertRegex(text, rf"(?m)^(?:.*, )?{name}(?:[=, \[]|$)")
                self.assertRegex(text, rf"\n\.SH SYNOPSIS\n{'' if own else 'opscope '}{command} ")

    def test_every_report_and_format(self):
        report, export = words(page("report")[0]), words(page("export")[0])
        for row in said("report", "--format=csv", "--columns=name,group_by").splitlines()[1:]:
            name, group_by = row.split(",", 1)
            self.assertRegex(report, rf"\n\.TP\n{name}\n.*" + ("--group-by takes " + re.split(r", | \+ ", group_by.strip('"'))[0] if group_by else ""))
        for name in re.findall(r"(?m)^([a-z-]+)  ", said("export")):
            self.assertIn(f"\n.TP\n{name}\n", export)

    def pages(self):
        return sorted(os.path.join(FOLDER, name) for name in os.listdir(FOLDER) if name.endswith(".1"))

    def quiet(self, *command, env=None, but="^$"):
        p = subprocess.run(command, capture_output=True, text=True, env={**PLAIN, **(env or {})})
        said = [line for line in (p.stdout * (command[0] == "mandoc") + p.stderr).splitlines() if not re.search(but, line)]
        self.assertEqual(said, [], command)

    def test_mandoc(self):
        """A version that is not released has no date."""
        needed("mandoc")
        self.quiet("mandoc", "-Tlint", "-W", "warning", *self.pages(), but="missing date")

    def test_man(self):
        needed("groff")
        if subprocess.run(["man", "--version"], capture_output=True).returncode if shutil.which("man") else True:
            self.skipTest("no man here")
        for path in self.pages():
            with self.subTest(os.path.basename(path)):
                self.quiet("man", "--warnings", "-E", "UTF-8", "-l", "-Tutf8", "-Z", path, env={"MANWIDTH": "80"})

    def test_groff(self):
        needed("groff")
        self.quiet("groff", "-man", "-ww", "-Kutf8", "-Tutf8", "-z", *self.pages())


LINES = (
    # a line up to the cursor, and what stands among the completions; after a bar what does not
    ("opscope rep", "report"),
    ("opscope ", "look report serve help trace.json"),
    ("opscope report over", "overview overlap"),
    ("opscope report overview ", "trace.json folder | overview"),
    ("opscope report overview --fo", "--format= --follow"),
    ("opscope report overview --format=", "text csv json html markdown"),
    ("opscope report overview --format=c", "csv | text"),
    ("opscope report overview --input-format=ki", "kineto"),
    ("opscope report operators --group-by=", "name shape"),
    ("opscope report operators --group-by=name,sh", "name,shape"),
    ("opscope report layers --group-by=", "layer type | shape"),
    ("opscope report overview --names ", "short full | trace.json"),
    ("opscope report overview -o tr", "trace.json"),
    ("opscope report overview --title=x -", "--format= -o | --github"),
    ("opscope --form", "--format="),
    ("opscope --width=80 tr", "trace.json"),
    ("opscope trace.json --wid", "--width="),
    ("opscope export chrome --c", "--counter-tracks --counters= --capture="),
    ("opscope export stacks --by=mo", "module"),
    ("opscope gate ", "learn check | trace.json"),
    ("opscope gate check tr", "trace.json"),
    ("opscope help ga", "gate"),
    ("opscope diff --by=", "term module kernel"),
    ("opscope record --back", "--backend="),
    ("opscope record --backend=", "auto own nsys"),
    ("opscope record -- bas", "bash"),
    ("opscope record bash tr", "trace.json"),
    ("opscope sql trace.json --", "--format="),
)
PREDECESSORS = {
    "dlprof": (("dlprof --mode=py", "pytorch"), ("dlprof --database=tr", "trace.json"), ("opscope report steps --compat=", "dlprof")),
    "pyprof": (("pyprof-parse --compat=py", "pyprof pyprof2 | opscope"), ("pyprof-parse tr", "trace.json"), ("opscope export pyprof-dict --", "--compat=")),
}


class Completion(oracle.Case):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = cls.temporary.name
        os.mkdir(os.path.join(cls.folder, "folder"))
        for name in ("trace.json", "a b.json"):
            with open(os.path.join(cls.folder, name), "w"):
                pass
        cls.lines = list(LINES)
        for predecessor, lines in PREDECESSORS.items():
            cls.lines += () if house.absent(predecessor) else lines

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def script(self, name):
        return oracle.built(os.path.join(FOLDER, name), "OPSCOPE_BUILD")

    def shell(self, *command):
        p = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, env=PLAIN)
        self.assertEqual((p.returncode, p.stderr), (0, ""), command)
        return p.stdout

    def bash(self, breaks, *lines):
        """What COMPREPLY holds for each line; words are parted as readline parts them."""
        text = f"COMP_WORDBREAKS='{breaks}'\nsource {self.script('opscope')}\n"
        for line in lines:
            words = [w for word in re.findall(r"(?:\\.|\S)+|(?<=(?<!\\) )$", line) for w in (re.findall(r"=|[^=]+", word) or [""] if "=" in breaks else [word])]
            quoted = " ".join("'" + w + "'" for w in words)
            text += f"COMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1} COMPREPLY=()\n_opscope {words[0]}\nprintf '%s\\t' \"${{COMPREPLY[@]}}\"; echo\n"
        return [line.split("\t")[:-1] for line in self.shell("bash", "--norc", "-c", text).splitlines()]

    def test_bash(self):
        needed("bash")
        for (line, expected), words in zip(self.lines, self.bash(" =", *(line for line, _ in self.lines))):
            with self.subTest(line):
                has, _, lacks = expected.partition(" | ")
                for word in has.split():
                    self.assertIn(word, words)
                for word in lacks.split():
                    self.assertNotIn(word, words)
                self.assertEqual(sorted(words), sorted(set(words)) if "bas" not in line else sorted(words))

    def test_bash_all_of_a_line(self):
        needed("bash")
        self.assertEqual(self.bash(" =", "opscope report --per=", "opscope report layers a\\ ", "opscope gate learn --anch"), [["total", "step", "call"], ["a b.json"], ["--anchor"]])
        self.assertEqual(self.bash(" ", "opscope report overview --format=c"), [["--format=csv"]])

    def test_zsh(self):
        needed("zsh")
        self.shell("zsh", "-f", "-n", self.script("_opscope"))

    def test_fish(self):
        """fish says itself what it would complete."""
        needed("fish")
        self.shell("fish", "--no-config", "--no-execute", self.script("opscope.fish"))
        for line, expected in (("opscope rep", "report"), ("opscope report over", "overview overlap"), ("opscope report overview --format=c", "--format=csv"), ("opscope report layers --group-by=", "--group-by=layer"),
                               ("opscope gate ", "learn check"), ("opscope export stacks --by=m", "--by=module"), ("opscope report overview tr", "trace.json")):
            with self.subTest(line):
                said = self.shell("fish", "--no-config", "-c", f"source {self.script('opscope.fish')}; complete -C '{line}'")
                found = {row.split("\t")[0] for row in said.splitlines()}
                for word in expected.split():
                    self.assertIn(word, found)


if __name__ == "__main__":
    house.main()
