"""Words: phrases that readers stumbled over stay out, help and errors are as they were read, paragraphs are short."""

import os
import re
import shlex
import subprocess

import pytest
from conftest import FATHOM, PYTHON, ROOT, environment

GOLDEN = ROOT / "tests" / "golden"
FORBIDDEN = ROOT / "tests" / "words" / "forbidden.txt"
# What is quoted from others or is the record of what was, and the lists of the phrases themselves.
QUOTED = ("CHANGELOG.md", "tests/words/", "tests/oom/", "tests/recorded/", "fuzz/corpus/", "bench/results/", "LICENSE")
TEXTS = {".rs", ".py", ".md", ".toml", ".js", ".ts", ".txt", ".html", ".css", ".yml", ".sbatch", ".sh", ""}
# Words of a paragraph of ARCHITECTURE.md.
LONGEST = 100


def texts():
    """Every text of the tree that people or programs read."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    names = listed.stdout.splitlines() if listed.returncode == 0 else []
    for name in names:
        path = ROOT / name
        if path.suffix in TEXTS and not name.startswith(QUOTED) and path.is_file():
            yield name, path.read_text(encoding="utf-8", errors="replace")


def phrases():
    lines = FORBIDDEN.read_text().splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def test_phrases_that_readers_stumbled_over_are_gone():
    found, files = [], 0
    for name, text in texts():
        files += 1
        # A phrase may be broken over two lines, in a string of Rust too.
        flat = re.sub(r"\\?\n\s*(///?!?|#|//|\*)?\s*", " ", text)
        found += [f"{name}: {phrase}" for phrase in phrases() if phrase in text or phrase in flat]
    if not files:
        pytest.skip("no repository")
    assert not found, "\n".join(found)


def test_the_list_is_looked_for(tmp_path):
    assert len(phrases()) > 30 and all(phrase == phrase.strip() for phrase in phrases())


def test_paragraphs_of_the_architecture_are_short():
    # A paragraph is a line there.
    for paragraph in (ROOT / "ARCHITECTURE.md").read_text().splitlines():
        assert paragraph.startswith("|") or len(paragraph.split()) <= LONGEST, paragraph


def golden(path, text):
    """Compares with a file of tests/golden, or writes it."""
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert path.read_text() == text, f"UPDATE_GOLDEN=1 pytest tests/test_words.py changes {path.relative_to(ROOT)}"


def printed(*words, folder=ROOT):
    """What the command prints; its place is not part of it."""
    if not FATHOM.exists():
        pytest.skip("make build")
    command = [str(FATHOM), *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment({"COLUMNS": "100"}))
    return done.stdout + done.stderr


def test_help_is_as_it_was_read():
    whole = printed("--help")
    commands = re.findall(r"^  (\w+) ", whole[whole.index("Commands:") : whole.index("Options:")], re.M)
    assert {"run", "explain", "fit"} <= set(commands)
    for command in ["", *(command for command in commands if command != "help")]:
        words = [command] if command else []
        text = printed(*words, "--help")
        golden(GOLDEN / "help" / f"{command or 'fathom'}.txt", text)
        assert text == printed("help", *words), "`fathom help X` and `fathom X --help` are one"


def test_the_page_of_commands_is_their_help():
    """docs/reference/commands.md, made of the golden texts."""
    order = re.findall(r"^  (\w+) ", (GOLDEN / "help" / "fathom.txt").read_text().partition("Commands:")[2].partition("Options:")[0], re.M)
    parts = ["# Commands\n\nWhat `--help` says. Flags can also be set in the environment and in `fathom.toml` ([settings](settings.md)).\n"]
    for command in ["fathom", *(command for command in order if command != "help")]:
        title = command if command == "fathom" else f"fathom {command}"
        parts.append(f"## `{title}`\n\n```text\n{(GOLDEN / 'help' / f'{command}.txt').read_text().rstrip()}\n```\n")
    golden(ROOT / "docs" / "reference" / "commands.md", "\n".join(parts))


# What is typed wrongly, and what it says: each error has a hint, or clap's usage.
WRONG = [
    ["run"],
    ["run", "--gpu", "rtx3099", "train.py"],
    ["run", "--memory", "16 apples", "train.py"],
    ["run", "--gpus", "0", "train.py"],
    ["run", "--gpus", "99", "train.py"],
    ["run", "--world-size", "0", "train.py"],
    ["run", "--world-size", "8", "--rank", "8", "train.py"],
    ["run", "--margin", "lots", "train.py"],
    ["run", "--verify", "maybe", "train.py"],
    ["run", "--whole", "maybe", "train.py"],
    ["run", "--batch-order", "random", "train.py"],
    ["run", "--assume", "here", "train.py"],
    ["run", "--jobs", "0", "train.py"],
    ["run", "--budget", "much", "train.py"],
    ["run", "--baseline", "none.json", "train.py"],
    ["run", "missing-command"],
    ["sweep", "--vary", "batch=8", "missing-command"],
    ["sweep", "--vary", "batch", "train.py"],
    ["fit", "--gpu", "rtx3099", "train.py"],
    ["explain"],
    ["explain", "missing.pickle"],
    ["replay", "missing.pickle"],
    ["diff", "a", "b"],
    ["page", "missing"],
    ["check"],
    ["gpus", "rtx3099"],
]


def test_errors_are_as_they_were_read(tmp_path):
    parts = []
    for words in WRONG:
        text = printed(*words, folder=tmp_path).replace(str(tmp_path), "FOLDER")
        parts.append(f"$ fathom {' '.join(words)}\n{text.rstrip()}\n")
        assert "error" in text and ("hint" in text or "Usage" in text), text
    golden(GOLDEN / "errors.txt", "\n".join(parts))


# The shortest example, and a case with long names: as wide as the reader.
WIDE = [(script, width) for script in ("first/train.py", "uni3d-dp3/train.py") for width in (60, 80, 120)]
CONFIGS = {"uni3d-dp3/train.py": "uni3d-128x64"}


@pytest.mark.parametrize(("script", "width"), WIDE, ids=lambda value: str(value).split("/")[0])
def test_the_report_is_as_wide_as_its_reader(fathom, script, width):
    words = ["--config", f"examples/{script.split('/')[0]}/{CONFIGS[script]}.yaml"] if script in CONFIGS else []
    command = ("run", "--gpu", "rtx3090", "--", ".venv/bin/python", f"examples/{script}", *words)
    done = fathom.command(*command, env={"COLUMNS": width}, timeout=300)
    report = re.search(r"^(FITS|DOES NOT FIT)  .*\Z", done.stdout, re.M | re.S)
    assert report, done.stdout + done.stderr
    text = re.sub(r"\d+\.\d s\b", "N s", report[0])
    lines = text.partition("\nnext ")[0].splitlines()
    assert all(len(line) <= width for line in lines), text
    golden(GOLDEN / "reports" / f"{script.split('/')[0]}-{width}.txt", text)


# Each case as its document has it, and the shortest example.
SHOWN = [
    ("first/train.py", "", "rtx3090"),
    ("uni3d-dp3/train.py", "uni3d-128x64", "rtx3090"),
    ("bev-graph/train.py", "before", "v100-32g-pcie"),
    ("dit3d/train.py", "document", "t4"),
    pytest.param(("avatar/train.py", "document", "a10g"), marks=pytest.mark.matrix),
    pytest.param(("stdiff/train.py", "document", "a100-80g"), marks=pytest.mark.matrix),
]


@pytest.mark.parametrize("case", SHOWN, ids=lambda case: case[0].split("/")[0])
def test_reports_of_the_cases_are_short(fathom, case):
    script, config, gpu = case
    script = ROOT / "examples" / script
    words = ["--config", script.parent / f"{config}.yaml"] if config else []
    done = fathom.command("run", "--gpu", gpu, "--", PYTHON, script, *words, env={"COLUMNS": "80"}, timeout=300)
    report = re.search(r"^(FITS|DOES NOT FIT)  .*\Z", done.stdout, re.M | re.S)
    assert report, done.stdout + done.stderr
    lines = report[0].splitlines()
    # The next command is as long as its paths: it counts as one line.
    at = next(number for number, line in enumerate(lines) if line.startswith("next "))
    assert at + 1 <= 20 and all(len(line) <= 80 for line in lines[:at]), report[0]
    causes = [line for line in lines if re.search(r"\d+ % ", line)]
    assert len(causes) == 3 and "not the cause" in report[0] and "not tested yet" in report[0], report[0]
    # The next command works as it stands: a shell takes its rows for one line.
    command = " ".join(line[9:] for line in lines[at:])
    words = shlex.split(command.replace("\\ ", ""))
    assert words[:2] == ["fathom", "fit" if report[1] == "DOES NOT FIT" else "run"] and str(script) in words, words
