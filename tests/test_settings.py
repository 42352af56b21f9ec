"""What flags say can be said in `fathom.toml` and in the environment; flags win, and a mistake is named with its place."""

import json
import re

import pytest
from conftest import PYTHON, ROOT

IS_WARM = True
ONE = "import torch; torch.ones(128, device='cuda')"


def run(fathom, folder, text, *flags, env=None):
    (folder / "fathom.toml").write_text(text)
    return fathom.command("run", *flags, "--", PYTHON, "-c", ONE, cwd=folder, env=env or {})


def test_flags_of_a_command_stand_below_its_name(fathom, tmp_path):
    (tmp_path / "inner").mkdir()
    text = "gpu = 'rtx3090'\n[run]\njson = 'report.json'\nmarkdown = 'report.md'\nheld = true\n[fit]\nheadroom = '5%'\n"
    (tmp_path / "fathom.toml").write_text(text)
    done = fathom.command("run", "--", PYTHON, "-c", ONE, cwd=tmp_path / "inner")
    assert done.returncode == 0, done.stderr
    # Files that it names lie beside it.
    assert json.loads((tmp_path / "report.json").read_text())["gpu"]["name"] == "rtx3090"
    assert (tmp_path / "report.md").exists() and not list((tmp_path / "inner").iterdir())


def test_the_environment_wins_over_the_file_and_flags_over_both(fathom, tmp_path):
    text = "[run]\njson = 'file.json'\n"
    run(fathom, tmp_path, text, env={"FATHOM_RUN_JSON": tmp_path / "variable.json"})
    assert (tmp_path / "variable.json").exists() and not (tmp_path / "file.json").exists()
    done = run(fathom, tmp_path, text, "--json", "-", env={"FATHOM_RUN_QUIET": "on"})
    assert json.loads(done.stdout)["schema"] == "fathom.report/1" and not (tmp_path / "file.json").exists()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[run]\npaeg = 'a.html'", ("`paeg` of `[run]`", "fathom.toml", "no flag `--paeg`", "known: ")),
        ("[run]\ngpu = 't4'", ("setting of several commands", "at the top of `fathom.toml`", "FATHOM_GPU")),
        ("[run]\nwhole = 'off'", ("at the top of `fathom.toml`", "FATHOM_WHOLE_RUN")),
        ("[run]\nrank = 'first'", ("`rank` of `[run]`", "invalid value 'first'", "fathom run --help")),
        ("[run]\nstrict = 1", ("`strict` of `[run]`", "`true` or `false`")),
        ("page = 'a.html'", ("not valid", "known keys", "below [run]")),
    ],
)
def test_mistakes_are_named_with_their_place(fathom, tmp_path, text, expected):
    done = run(fathom, tmp_path, text)
    assert done.returncode == 2 and not done.stdout, done.stdout
    assert "hint: " in done.stderr and "panicked" not in done.stderr
    for each in expected:
        assert each in done.stderr, done.stderr


def test_a_variable_that_is_no_flag_is_an_error(fathom, tmp_path):
    done = run(fathom, tmp_path, "", env={"FATHOM_RUN_PAGGE": "a.html"})
    assert done.returncode == 2 and "FATHOM_RUN_PAGGE: `fathom run` has no flag `--pagge`" in done.stderr


def test_a_required_flag_may_be_set(fathom, tmp_path):
    """`--vary` is asked for where neither says it."""
    (tmp_path / "train.py").write_text("import sys, torch; torch.ones(int(sys.argv[2]) << 20, device='cuda')")
    words = ("sweep", "--quiet", "--", PYTHON, "train.py", "--mib", "1")
    assert "--vary" in fathom.command(*words, cwd=tmp_path).stderr
    (tmp_path / "fathom.toml").write_text("[sweep]\nvary = ['mib=1,2']\ngpu = ['t4', 'a10g']\nrecord = 'off'\n")
    assert "at the top of" in fathom.command(*words, cwd=tmp_path).stderr
    (tmp_path / "fathom.toml").write_text("[sweep]\nvary = ['mib=1,2']\ngpu = ['t4', 'a10g']\njson = 'sweep.json'\n")
    done = fathom.command(*words, cwd=tmp_path)
    assert done.returncode == 0 and (tmp_path / "sweep.json").exists(), done.stderr
    assert re.search(r"^mib .* t4 +a10g$", done.stdout, re.M), done.stdout


def test_the_doctor_shows_them(fathom, tmp_path):
    (tmp_path / "fathom.toml").write_text("[run]\npage = 'report.html'\n")
    done = fathom.command("doctor", "--", PYTHON, cwd=tmp_path, env={"FATHOM_FIT_WRITE": "on"})
    rows = re.findall(r"^ok +setting +(run page|fit write): (\S+)", done.stdout, re.M)
    assert rows == [("run page", f"--page={tmp_path}/report.html"), ("fit write", "--write")], done.stdout


def test_help_does_not_read_the_file(fathom, tmp_path):
    (tmp_path / "fathom.toml").write_text("[run]\nnothing = 1")
    for words in (("run", "--help"), ("help", "run"), ("gpus",)):
        assert fathom.command(*words, cwd=tmp_path).returncode == 0


def test_the_page_of_settings_has_every_shared_key():
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    keys = re.search(r"known keys: ([\w, ]+);", (ROOT / "crates/fathom/src/settings/file.rs").read_text()).group(1)
    assert all(f"`{key}`" in page for key in keys.split(", "))
