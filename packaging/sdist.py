"""The source distribution: the files that `pip install` needs to build the wheel, from the repository or from another
source distribution.

maturin packs the crates that the command depends on, and the libraries are none of them. So it is written here: the
same tree gives the same bytes.
"""

import gzip
import io
import os
import re
import tarfile
from pathlib import Path

# Tests, benchmarks and pictures stay in the repository.
ROOMS = ("crates", "python", "packaging", "docs")
OF_RUST = ("Cargo.toml", "Cargo.lock", "clippy.toml", "rustfmt.toml")
FILES = (*OF_RUST, "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "SECURITY.md")
LEFT_OUT = ("__pycache__", "node_modules", "target", ".mypy_cache")
BUILT = (".so", ".wasm", ".pyc")


def build(root, folder):
    """Writes it; its file's name."""
    project = (root / "pyproject.toml").read_text()
    version = re.search(r'^version = "(.*)"', project, re.M).group(1)
    name = f"fathom_gpu-{version}"
    with (folder / f"{name}.tar.gz").open("wb") as file:
        # Without its name and time: those of the file would be others in each build.
        with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
            for path in sorted(files(root)):
                add(tar, f"{name}/{path.relative_to(root).as_posix()}", path.read_bytes(), os.access(path, os.X_OK))
            add(tar, f"{name}/PKG-INFO", information(project, version, root).encode(), False)
    return f"{name}.tar.gz"


def files(root):
    for room in ROOMS:
        for folder, inner, names in os.walk(root / room):
            inner[:] = [each for each in inner if each not in LEFT_OUT]
            yield from (Path(folder, each) for each in names if not each.endswith(BUILT))
    yield from (root / each for each in FILES)


def add(tar, name, content, is_program):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode, entry.mtime = len(content), 0o755 if is_program else 0o644, 0
    tar.addfile(entry, io.BytesIO(content))


def information(project, version, root):
    """What an index shows, from `pyproject.toml`."""

    def text(key):
        return re.search(rf'^{key} = "(.*)"', project, re.M).group(1)

    def texts(key):
        found = re.search(rf"^{key} = \[(.*?)\]", project, re.M | re.S)
        return re.findall(r'"(.*?)"', found.group(1)) if found else []

    urls = re.search(r"^\[project\.urls\]\n(.*?)(?:\n\n|\Z)", project, re.M | re.S)
    rows = re.findall(r'^"?([^"=\n]+?)"? = "(.*)"', urls.group(1), re.M) if urls else []
    lines = ["Metadata-Version: 2.4", f"Name: {text('name')}", f"Version: {version}", f"Summary: {text('description')}"]
    lines += [f"Keywords: {','.join(texts('keywords'))}"] if texts("keywords") else []
    lines += [f"Classifier: {each}" for each in texts("classifiers")]
    lines += [f"Project-URL: {name.strip()}, {url}" for name, url in rows]
    lines += [f"License-Expression: {text('license')}", "License-File: LICENSE-APACHE", "License-File: LICENSE-MIT"]
    lines += [f"Requires-Python: {text('requires-python')}", "Description-Content-Type: text/markdown", ""]
    return "\n".join(lines) + "\n" + (root / "README.md").read_text()
