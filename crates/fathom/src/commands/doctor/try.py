"""What `fathom doctor` runs on the phantom, as `python -I -S -c … FILE PACKAGES`. Each line of FILE is one thing that was tried.

PACKAGES is the folder where the script will find torch. No other is looked into, so that no file of the user's runs.
"""

import os
import shutil
import sys
import time

FILE = open(sys.argv[1], "w")
sys.path.append(sys.argv[2])
# The compiler's workers would start with the user's `sitecustomize`.
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"


def attempt(label, what):
    """Whether it went well; what it says, or why it failed, is a line."""
    begun = time.monotonic()
    try:
        mark, text = "ok", what()
    except ModuleNotFoundError as error:
        mark, text = "note", f"not tried: `{error.name}` is in another folder than torch, or is missing"
    except Exception as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        mark, text = "FAIL", f"{type(error).__name__}: {lines[0] if lines else 'no reason given'}"
    print(mark, label, f"{text} ({time.monotonic() - begun:.1f} s)".replace("\t", " "), sep="\t", file=FILE, flush=True)
    return mark == "ok"


def imports():
    import torch

    return f"`import torch` works: {torch.__version__}"


def allocates():
    import torch

    tensor = torch.ones(1 << 20, device="cuda")
    tensor.add_(1)
    return f"a tensor of {torch.cuda.memory_allocated() >> 20} MiB is on {torch.cuda.get_device_name()}"


def convolves():
    import torch

    layer = torch.nn.Conv2d(64, 64, 3, padding=1).cuda()
    layer(torch.randn(8, 64, 32, 32, device="cuda")).sum().backward()
    return "a convolution ran forward and backward"


def compiles():
    import torch

    torch.compile(lambda x: x * 2 + 1)(torch.ones(64, device="cuda"))
    return "torch.compile compiled one line"


if attempt("import", imports) and attempt("tensor", allocates):
    attempt("conv", convolves)
    compiler = os.environ.get("CC") or next(filter(shutil.which, ("cc", "gcc", "clang")), None)
    if compiler is None:
        print("note", "compile", "not tried: there is no C compiler, which torch.compile needs", sep="\t", file=FILE, flush=True)
    else:
        attempt("compile", compiles)
# Nothing that comes at the end of a process counts here.
FILE.close()
os._exit(0)
