"""PEP 517 for opscope: wheels and sdists by the project's own Meson, with nothing but the standard library.

A wheel has the Python package, its extensions, and in opscope/bin the program and the library that it records with; build_wheel builds all of
it for the Python that runs this. Settings (pip wheel -C NAME=VALUE):

  build-dir   a build folder, set up with -Dpython=enabled for this Python and up to date: nothing is built
  setup-args  further words for `meson setup`
"""
import base64
import contextlib
import hashlib
import io
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# What the wheel has of what Meson installs, besides what has the tag "python": the file's name -> its place.
PROGRAMS = {"opscope": "opscope/bin/opscope", "libopscope-inject.so": "opscope/bin/libopscope-inject.so"}


def project(path):
    """What a pyproject.toml says of its project."""
    try:
        import tomllib
    except ImportError:  # before Python 3.11
        import tomli as tomllib
    with open(path, "rb") as f:
        return tomllib.load(f)["project"]


def _project():
    return project(os.path.join(ROOT, "pyproject.toml"))


def version():
    with open(os.path.join(ROOT, "meson.build"), encoding="utf-8") as f:
        return re.search(r"version: '([^']+)'", f.read())[1]


def _requirements(project):
    """Of the project and of its extras; those that are opscope's own are of the same version."""
    extras = project.get("optional-dependencies", {})
    return [f"Requires-Dist: {d}" for d in project.get("dependencies", ())] + [f"Provides-Extra: {extra}" for extra in extras] + [
        f"Requires-Dist: {d}=={version()}; extra == '{extra}'" for extra, needs in extras.items() for d in needs]


def _metadata(project):
    """METADATA of a wheel, PKG-INFO of an sdist."""
    with open(os.path.join(ROOT, project["readme"]), encoding="utf-8") as f:
        readme = f.read()
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {version()}", f"Summary: {project['description']}",
             *(f"Author: {a['name']}" for a in project["authors"]), f"License-Expression: {project['license']}",
             *(f"License-File: {path}" for path in project["license-files"]), f"Requires-Python: {project['requires-python']}", *(f"Classifier: {c}" for c in project["classifiers"]), *_requirements(project),
             "Description-Content-Type: text/markdown"]
    return "\n".join(lines) + "\n\n" + readme


def stem(project):
    return f"{project['name'].replace('-', '_')}-{version()}"


def _date():
    """Of all files in what is built, so that the same sources give the same bytes."""
    return max(int(os.environ.get("SOURCE_DATE_EPOCH", 315532800)), 315532800)  # zip knows no time before 1980


# --- the build --------------------------------------------------------------------------------------------------


def _environment():
    """In which meson runs: pip hides the system's packages from what it runs by PYTHONPATH, and so from a meson of the system its own."""
    plain = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    for env in (dict(os.environ), plain):
        if subprocess.run(["meson", "--version"], env=env, capture_output=True).returncode == 0:
            return env
    return plain


def _setup(build, settings):
    """Optimised, with what is not in a wheel left out, as far as Meson knows it."""
    native = build + ".ini"
    with open(native, "w", encoding="utf-8") as f:
        f.write(f"[binaries]\npython = {sys.executable!r}\n")
    # The viewer's pages need libraries of npm: they are in the wheel if the tree has fetched them, or has the pages, as an sdist has.
    fetched = any(os.path.isdir(os.path.join(ROOT, "web", folder)) for folder in ("node_modules", "pages"))
    words = settings.get("setup-args") or ""
    words = words if isinstance(words, list) else shlex.split(words)
    subprocess.run(["meson", "setup", build, ROOT, "--native-file", native, "--buildtype=release", "-Dwerror=false", "-Dpython=enabled",
                    "-Dtests=disabled", f"-Dviewer={'auto' if fetched else 'disabled'}", *words], check=True, env=_environment())


def _ninja(build):
    """Builds. pip keeps what a build prints to itself, unless told -v: behind what pip shows, the terminal has how far it is."""
    try:
        terminal = open("/dev/tty", "w", encoding="ascii") if os.environ.get("TERM", "dumb") != "dumb" and not sys.stdout.isatty() else None
    except OSError:
        terminal = None
    with contextlib.closing(terminal) if terminal else contextlib.nullcontext():
        ninja = subprocess.Popen(["ninja", "-C", build], env=_environment(), stdout=subprocess.PIPE, text=True, errors="replace")
        for line in ninja.stdout:
            print(line, end="", flush=True)
            done = re.match(r"\[(\d+)/(\d+)\]", line)
            if done and terminal:
                terminal.write(f"\x1b7  {done[1]} of {done[2]} files \x1b[K\x1b8")  # and back to where pip was
                terminal.flush()
        if terminal:
            terminal.write("\x1b7\x1b[K\x1b8")
    if ninja.wait():
        raise subprocess.CalledProcessError(ninja.returncode, ninja.args)


def _installed(build):
    """(file, place in the wheel) of all that Meson would install and a wheel has."""
    with open(os.path.join(build, "meson-info", "intro-install_plan.json"), encoding="utf-8") as f:
        plan = json.load(f)
    for files in plan.values():
        for path, how in files.items():
            if how["tag"] == "python":
                yield path, "opscope/" + os.path.basename(path)
            elif os.path.basename(path) in PROGRAMS and how["tag"] in ("runtime", None) and os.path.isfile(path):
                yield path, PROGRAMS[os.path.basename(path)]


def _tag(places):
    """abi3 when all extensions have the limited API, else this Python alone. The platform is this machine's: the libraries of its
    distribution are not in the wheel."""
    platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    extensions = [p for p in places if p.endswith(".so") and "/bin/" not in p]
    python = "cp%d%d" % sys.version_info[:2]
    return f"cp39-abi3-{platform}" if all(".abi3." in p for p in extensions) else f"{python}-{python}-{platform}"


class Wheel:
    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, place, data, mode=0o644):
        entry = zipfile.ZipInfo(place, time.gmtime(_date())[:6])
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (stat.S_IFREG | mode) << 16
        self.zip.writestr(entry, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        self.record.append(f"{place},sha256={digest},{len(data)}")

    def finish(self, info):
        self.record.append(f"{info}/RECORD,,")
        self.add(f"{info}/RECORD", ("\n".join(self.record) + "\n").encode())
        self.zip.close()


def put_info(add, info, project):
    add(f"{info}/METADATA", _metadata(project).encode())
    for path in project["license-files"]:
        with open(os.path.join(ROOT, path), "rb") as f:
            add(f"{info}/licenses/{path}", f.read())
    scripts = "".join(f"{name} = {target}\n" for name, target in project["scripts"].items())
    if scripts:
        add(f"{info}/entry_points.txt", f"[console_scripts]\n{scripts}".encode())


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    settings, project = config_settings or {}, _project()
    with tempfile.TemporaryDirectory() as work:
        build = settings.get("build-dir")
        if build:
            build = os.path.join(ROOT, build)
        else:
            build = os.path.join(work, "build")
            _setup(build, settings)
            _ninja(build)
        files = sorted(_installed(build), key=lambda f: f[1])
        tag, info = _tag([place for _, place in files]), f"{stem(project)}.dist-info"
        name = f"{stem(project)}-{tag}.whl"
        part = os.path.join(work, name)
        wheel = Wheel(part)
        for path, place in files:
            with open(path, "rb") as f:
                wheel.add(place, f.read(), 0o755 if os.access(path, os.X_OK) else 0o644)
        put_info(wheel.add, info, project)
        wheel.add(f"{info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: opscope\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
        wheel.finish(info)
        shutil.move(part, os.path.join(wheel_directory, name))
    return name


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    project = _project()
    info = f"{stem(project)}.dist-info"

    def add(place, data):
        os.makedirs(os.path.dirname(os.path.join(metadata_directory, place)), exist_ok=True)
        with open(os.path.join(metadata_directory, place), "wb") as f:
            f.write(data)

    put_info(add, info, project)
    return info


def _missing_tools():
    return [f"{package}{version}" for package, version in (("meson", ">=1.0"), ("ninja", "")) if not shutil.which(package)]


def toml():
    return [] if sys.version_info >= (3, 11) else ["tomli"]


def get_requires_for_build_wheel(config_settings=None):
    return toml() + ([] if (config_settings or {}).get("build-dir") else _missing_tools())


# --- sdist ------------------------------------------------------------------------------------------------------


def _sources():
    """Files that git has; where there is no git, as in an unpacked sdist, those that the sdist has."""
    listed = subprocess.run(["git", "-C", ROOT, "ls-files", "-z"], capture_output=True) if os.path.exists(os.path.join(ROOT, ".git")) else None
    if listed and listed.returncode == 0:
        return sorted(f for f in listed.stdout.decode().split("\0") if f and os.path.isfile(os.path.join(ROOT, f)))
    with open(os.path.join(ROOT, "SOURCES.txt"), encoding="utf-8") as f:
        return f.read().splitlines()


def _clean(entry):
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mtime = _date()
    entry.mode = 0o755 if entry.mode & 0o100 else 0o644
    return entry


def _pages(folder):
    """The viewer's pages, made in `folder`, for who has no npm: name in the sdist -> file. None where no libraries have been fetched for them."""
    if not os.path.isdir(os.path.join(ROOT, "web", "node_modules")):
        return {}
    subprocess.run([os.path.join(ROOT, "tools", "web.sh"), "--pages", os.path.join(ROOT, "web"), os.path.join(folder, "pages")], check=True)
    return {f"web/{made}/{name}": os.path.join(folder, made, name) for made in ("pages-plot", "pages") for name in sorted(os.listdir(os.path.join(folder, made)))}


def build_sdist(sdist_directory, config_settings=None):
    project = _project()
    top, name = stem(project), stem(project) + ".tar.gz"
    sources = _sources()
    with tempfile.TemporaryDirectory() as work, tarfile.open(os.path.join(sdist_directory, name), "w:gz", format=tarfile.PAX_FORMAT, compresslevel=6) as tar:
        pages = _pages(work)
        made = {"PKG-INFO": _metadata(project), "SOURCES.txt": "\n".join([*sources, *pages]) + "\n"}
        for path in sources:
            tar.add(os.path.join(ROOT, path), f"{top}/{path}", recursive=False, filter=_clean)
        for path, page in pages.items():
            tar.add(page, f"{top}/{path}", filter=_clean)
        for path, text in made.items():
            entry = _clean(tarfile.TarInfo(f"{top}/{path}"))
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return name


def get_requires_for_build_sdist(config_settings=None):
    return toml()
