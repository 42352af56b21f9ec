"""Asked of the user's Python before a run: where is torch, and what does it need? Imports nothing of it."""

import glob
import importlib.util
import json
import os
import platform
import re
import sys

sys.path[:1] = []  # the folder we happen to stand in is not where torch is


def read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def torch_facts(folder):
    version = dict(re.findall(r"^(\w+)\s*(?::[^=]*)?=\s*['\"](.*?)['\"]", read(f"{folder}/version.py"), re.M))
    site = os.path.dirname(folder)
    pins = ""
    for metadata in glob.glob(f"{glob.escape(site)}/torch-*.dist-info/METADATA"):
        pins = read(metadata)
    cudnn_pin = re.search(r"^Requires-Dist: nvidia-cudnn-cu\d+ *\(?==([\d.]+)", pins, re.M)
    return {
        "folder": folder,
        "version": version.get("__version__", "unknown"),
        "cuda": version.get("cuda"),
        "has_cuda": os.path.exists(f"{folder}/lib/libtorch_cuda.so"),
        "cudnn_pin": cudnn_pin and cudnn_pin.group(1),
        "cudnn": installed_cudnn(),
        "packages": packages(site),
    }


def installed_cudnn():
    for folder in sys.path:
        path = os.path.join(folder, "nvidia/cudnn/lib/libcudnn.so.9")
        if os.path.exists(path):
            return path
    return None


def packages(site):
    """Files and folders of installed packages that are built on torch: they may need more libraries."""
    found = set()
    for metadata in glob.glob(f"{glob.escape(site)}/*.dist-info/METADATA"):
        if not re.search(r"^Requires-Dist: torch\b(?!vision|audio)", read(metadata), re.M):
            continue
        for line in read(metadata[: -len("METADATA")] + "RECORD").splitlines():
            path = line.split(",")[0]
            if re.search(r"\.so(\.\d+)*$", path) and not path.startswith(("..", "nvidia/", "torch/")):
                found.add(os.path.join(site, path.split("/")[0]))
    return sorted(found)


spec = importlib.util.find_spec("torch")
folder = spec.submodule_search_locations[0] if spec and spec.submodule_search_locations else None
print(
    json.dumps(
        {
            "executable": sys.executable,
            "version": platform.python_version(),
            "system": platform.system(),
            "machine": platform.machine(),
            "libc": platform.libc_ver()[0],
            "torch": torch_facts(folder) if folder else None,
        }
    )
)
