"""Asked of the user's Python before a run: where will a script find torch, and what does that need?

Started as `python -I -S -c …`: with neither the working folder nor PYTHONPATH nor any site-packages, so that every
module that is imported here is the interpreter's own. Where the script will look is then worked out by the
interpreter's own `site`, of which everything is done but to run code: lines of `.pth` files that begin with `import`,
sitecustomize and usercustomize. Nothing of torch is imported.
"""

import glob
import importlib.machinery
import json
import os
import platform
import re
import site
import sys
import sysconfig
import urllib.parse

# The letters of Python's own options in the command, and the folder that it puts first.
OPTIONS, FIRST = sys.argv[1:]

# Files and folders on which the answers rest; some of them are not there.
rests_on = set()


def note(path):
    rests_on.add(path)
    return path


def look_where_the_script_will():
    """`sys.path` as the script will have it."""
    environment = {} if set("EI") & set(OPTIONS) else os.environ
    start = [FIRST] if FIRST and not set("PI") & set(OPTIONS) and not environment.get("PYTHONSAFEPATH") else []
    given = environment.get("PYTHONPATH")
    sys.path[:0] = start + ([path or os.getcwd() for path in given.split(os.pathsep)] if given else [])
    if environment.get("PYTHONHOME"):
        prefix, _, exec_prefix = environment["PYTHONHOME"].partition(os.pathsep)
        sys.prefix, sys.exec_prefix = prefix, exec_prefix or prefix
        site.PREFIXES[:] = [sys.prefix, sys.exec_prefix]
    if "S" in OPTIONS:
        return
    user_site = not set("sI") & set(OPTIONS) and not environment.get("PYTHONNOUSERSITE") and os.getuid() == os.geteuid()
    add_package, add_folder = site.addpackage, site.addsitedir
    site.exec = lambda line: None
    site.execsitecustomize = site.execusercustomize = lambda: None
    site.check_enableusersite = lambda: user_site
    site.addpackage = lambda folder, name, known: add_package(note(os.path.join(folder, name)) and folder, name, known)
    site.addsitedir = lambda folder, known=None: add_folder(note(folder), known)
    if user_site:
        note(site.getusersitepackages())
    for folder in (os.path.dirname(sys.executable), os.path.dirname(os.path.dirname(sys.executable))):
        note(os.path.join(folder, "pyvenv.cfg"))
    site.main()


def find_torch():
    """The folder that `import torch` will take, or that of an editable installation, which only code could name; and
    what it will take instead if that is no PyTorch."""
    endings = ["", *importlib.machinery.all_suffixes()]
    for path in sys.path:
        spec = importlib.machinery.PathFinder.find_spec("torch", [path])
        if spec and spec.origin:
            note(path)
            folder = spec.submodule_search_locations[0] if spec.submodule_search_locations else None
            is_torch = folder and os.path.isdir(note(f"{folder}/lib")) or os.path.isfile(note(f"{folder}/version.py"))
            return (folder, None) if is_torch else (None, spec.origin)
        for ending in endings:
            note(os.path.join(path, "torch" + ending))
    for path in sys.path:
        for file in glob.glob(f"{glob.escape(path)}/torch-*.dist-info/direct_url.json"):
            direct = json.loads(read(file) or "{}")
            if direct.get("dir_info", {}).get("editable"):
                project = urllib.parse.unquote(urllib.parse.urlparse(direct.get("url", "")).path)
                for folder in (f"{project}/torch", f"{project}/src/torch"):
                    if os.path.isfile(note(f"{folder}/__init__.py")):
                        return folder, None
    return None, None


def read(path):
    try:
        with open(note(path), encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def torch_facts(folder):
    version = dict(re.findall(r"^(\w+)\s*(?::[^=]*)?=\s*['\"](.*?)['\"]", read(f"{folder}/version.py"), re.M))
    packages_folder = note(os.path.dirname(folder))
    pins = ""
    for metadata in glob.glob(f"{glob.escape(packages_folder)}/torch-*.dist-info/METADATA"):
        pins = read(metadata)
    cudnn_pin = re.search(r"^Requires-Dist: nvidia-cudnn-cu\d+ *\(?==([\d.]+)", pins, re.M)
    return {
        "folder": folder,
        "version": version.get("__version__", "unknown"),
        "cuda": version.get("cuda"),
        "has_cuda": os.path.exists(note(f"{folder}/lib/libtorch_cuda.so")),
        "cudnn_pin": cudnn_pin and cudnn_pin.group(1),
        "cudnn": installed_cudnn(),
        "packages": packages(packages_folder),
    }


def installed_cudnn():
    for folder in sys.path:
        path = os.path.join(folder, "nvidia/cudnn/lib/libcudnn.so.9")
        if os.path.exists(note(path)):
            return path
    return None


def packages(folder):
    """Files and folders of installed packages that are built on torch: they may need more libraries."""
    found = set()
    for metadata in glob.glob(f"{glob.escape(folder)}/*.dist-info/METADATA"):
        if not re.search(r"^Requires-Dist: torch\b(?!vision|audio)", read(metadata), re.M):
            continue
        for line in read(metadata[: -len("METADATA")] + "RECORD").splitlines():
            path = line.split(",")[0]
            if re.search(r"\.so(\.\d+)*$", path) and not path.startswith(("..", "nvidia/", "torch/")):
                found.add(os.path.join(folder, path.split("/")[0]))
    return sorted(found)


def main():
    look_where_the_script_will()
    folder, instead = find_torch()
    answers = {
        "executable": sys.executable,
        "version": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "libc": platform.libc_ver()[0],
        "torch": torch_facts(folder) if folder else None,
        "instead": instead,
        "nvidia": [path for path in (os.path.join(part, "nvidia") for part in sys.path) if os.path.isdir(path)],
        "include": sysconfig.get_path("include"),
    }
    seen = sorted(rests_on)
    if not is_text(answers):
        sys.exit("the name of a folder on its way to torch is not UTF-8")
    print(json.dumps({**answers, "rests_on": seen if is_text(seen) else None}))


def is_text(answers):
    """Whether JSON can hold it: a name on Linux is any bytes, and Python's stand-ins for those are no text."""
    try:
        json.dumps(answers, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


main()
