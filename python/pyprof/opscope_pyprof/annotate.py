"""What init() of these modules does: opscope.torch annotates, with their texts."""
import opscope.torch


def begin(module, **options):
    """init() of the module of that name; it says when it begins and when it has ended, as the real one."""
    print(f"{module}: opscope annotates PyTorch")
    listens = opscope.torch.init(**options)
    print(f"{module}: done" if listens else f"{module}: done; nobody records (nsys, nvprof, opscope record), so that nothing was wrapped")


def add_wrapper(mod, fn_name):
    """Annotates the function of a module or class, too."""
    opscope.torch.wrap(mod, fn_name)
