"""The notes of a release: its section of CHANGELOG.md. `python packaging/notes.py 0.1.0`, or `Unreleased`."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def notes(text, version):
    """Without the heading; None if there is no such section."""
    found = re.search(rf"^## \[?{re.escape(version)}\]?(?: [^\n]*)?\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    return found.group(1).strip() + "\n" if found else None


if __name__ == "__main__":
    found = notes((ROOT / "CHANGELOG.md").read_text(), sys.argv[1])
    if found is None:
        sys.exit(f"error: CHANGELOG.md has no section `{sys.argv[1]}`\n\nhint: its sections begin with `## `")
    print(found, end="")
