"""PEP 517 for opscope-pyprof: a wheel of what lies beside this file, by the functions of opscope's own backend. Paths of pyproject.toml are those of the clone."""
import importlib.util
import os
import shutil
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))


def _opscope():
    """The backend of opscope: python/backend.py of the clone."""
    path = os.path.join(os.path.dirname(HERE), "backend.py")
    if not os.path.isfile(path):
        raise FileNotFoundError(f"{path}: opscope-pyprof is built in a clone of opscope")
    spec = importlib.util.spec_from_file_location("opscope_backend", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _files():
    """(file, place in the wheel)."""
    yield os.path.join(HERE, "opscope_pyprof.pth"), "opscope_pyprof.pth"
    for folder, folders, names in os.walk(os.path.join(HERE, "opscope_pyprof")):
        folders[:] = sorted(f for f in folders if f != "__pycache__")
        for name in sorted(names):
            path = os.path.join(folder, name)
            yield path, os.path.relpath(path, HERE)


def _project(opscope):
    project = opscope.project(os.path.join(HERE, "pyproject.toml"))
    return {**project, "dependencies": [f"opscope=={opscope.version()}"]}


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    opscope = _opscope()
    project = _project(opscope)
    info, name = f"{opscope.stem(project)}.dist-info", f"{opscope.stem(project)}-py3-none-any.whl"
    with tempfile.TemporaryDirectory() as work:
        part = os.path.join(work, name)
        wheel = opscope.Wheel(part)
        for path, place in _files():
            with open(path, "rb") as f:
                wheel.add(place, f.read(), 0o755 if os.access(path, os.X_OK) else 0o644)
        opscope.put_info(wheel.add, info, project)
        wheel.add(f"{info}/WHEEL", b"Wheel-Version: 1.0\nGenerator: opscope\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.finish(info)
        shutil.move(part, os.path.join(wheel_directory, name))
    return name


def get_requires_for_build_wheel(config_settings=None):
    return _opscope().toml()
