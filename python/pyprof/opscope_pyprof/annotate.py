"""What init() of these modules does: opscope.torch annotates, with their texts. Only then is torch needed: pyprof.parse and pyprof.prof, which lie in the same packages, read
files."""
from importlib import import_module


def begin(module, **options):
    """init() of the module of that name; it says when it begins and when it has ended, as the real one."""
    print(f"{module}: opscope annotates PyTorch")
    listens = import_module("opscope.torch").init(**options)
    print(f"{module}: done" if listens else f"{module}: done; nobody records (nsys, nvprof, opscope record), so that nothing was wrapped")


def add_wrapper(mod, fn_name):
    """Annotates the function of a module or class, too."""
    import_module("opscope.torch").wrap(mod, fn_name)
