"""Checks every link between the documents: files, and headings in them; and that the book has every page of docs/.

Links to the web are not followed: they break elsewhere, and a build must not depend on them.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Written by others, or by programs that know no links.
LEFT_OUT = (".venv", ".venvs", "target", "node_modules", "dist")
LINK = re.compile(r"(?<!\!)\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)|!\[[^\]]*\]\(([^()\s]+)\)")


def documents(root=ROOT):
    for path in sorted(root.rglob("*.md")):
        if not set(path.relative_to(root).parts) & set(LEFT_OUT):
            yield path


def prose(text):
    """Without code, where brackets mean something else."""
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S))


def anchors(text):
    """As GitHub and mdBook name headings; a second one of the same words gets a number."""
    seen, found = {}, set()
    for title in re.findall(r"^#+ +(.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title).strip().lower()
        name = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        count = seen[name] = seen.get(name, -1) + 1
        found.add(name if not count else f"{name}-{count}")
    return found


def broken(path, root=ROOT):
    """Each link of a document that leads nowhere, with the reason."""
    for link in (one or other for one, other in LINK.findall(prose(path.read_text(encoding="utf-8")))):
        if re.match(r"\w+:", link):
            continue
        name, _, heading = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists():
            yield f"{path.relative_to(root)}: {link}: no such file"
        elif heading and target.suffix == ".md" and heading not in anchors(target.read_text(encoding="utf-8")):
            yield f"{path.relative_to(root)}: {link}: no such heading"


def not_in_the_book(root=ROOT):
    docs = root / "docs"
    listed = {(docs / link).resolve() for link, _ in LINK.findall((docs / "SUMMARY.md").read_text())}
    for path in sorted(docs.rglob("*.md")):
        if path.resolve() not in listed and path.name != "SUMMARY.md":
            yield f"docs/SUMMARY.md: {path.relative_to(docs)} is not in it"


if __name__ == "__main__":
    found = [each for path in documents() for each in broken(path)] + list(not_in_the_book())
    print("\n".join(found), file=sys.stderr, end="\n" if found else "")
    sys.exit(1 if found else 0)
