"""The gate: budgets, baselines and `fathom check`, and what they write for CI."""

import json
import re
import xml.etree.ElementTree as xml

import pytest
from conftest import PYTHON
from small_runs import assert_refused

IS_WARM = True

# 28 MiB at a width of 1,024, 83 MiB at 4,096.
TRAIN = """
import sys
import torch
width = int(sys.argv[1])
model = torch.nn.Sequential(torch.nn.Linear(1024, width), torch.nn.ReLU(), torch.nn.Linear(width, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step in range(5):
    model(torch.randn(512, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step)
"""
TOML = f"""
gpu = "rtx3090"

[[script]]
name = "small"
command = "{PYTHON} train.py 1024"
baseline = "memory/small.json"

[[script]]
name = "large | <b>"
command = ["{PYTHON}", "train.py", "4096"]
budget = "300MiB"

[[script]]
name = "broken"
command = '{PYTHON} -c "raise SystemExit(7)"'
"""


@pytest.fixture(scope="module")
def project(fathom, tmp_path_factory):
    """A repository with a gate, after `fathom check --update-baselines small`."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "train.py").write_text(TRAIN)
    (folder / "fathom.toml").write_text(TOML)
    (folder / "deep").mkdir()
    done = fathom.command("check", "--update-baselines", "small", cwd=folder / "deep")
    assert done.returncode == 0, done.stderr
    assert "wrote memory/small.json" in done.stderr
    return folder


@pytest.fixture(scope="module")
def checked(fathom, project):
    """`fathom check` of all three, started from a folder below."""
    words = ("--json", "check.json", "--junit", "junit.xml", "--markdown", "note.md")
    return fathom.command("check", *words, cwd=project / "deep")


def test_a_baseline_is_small_and_says_nothing_of_this_machine(project):
    text = (project / "memory" / "small.json").read_text()
    baseline = json.loads(text)
    assert baseline["schema"] == "fathom.baseline/1" and baseline["gpu"]["name"] == "rtx3090"
    assert len(text) < 2000 and "/" not in text.replace("fathom.baseline/1", "") and "seconds" not in text
    peak = baseline["peak"]
    assert sum(row["bytes"] for row in baseline["categories"]) == peak["allocated_bytes"]
    assert sum(row["bytes"] for row in baseline["modules"]) == peak["allocated_bytes"]
    assert peak["allocated_bytes"] <= peak["reserved_bytes"] < peak["device_bytes"]
    assert ("*", "Linear") in {(row["path"], row["class"]) for row in baseline["modules"]}


def test_check_runs_every_script_and_fails_if_one_does_not_pass(checked, project):
    assert checked.returncode == 1, checked
    rows = [line.split()[:2] for line in checked.stdout.splitlines() if re.match("pass|FAIL", line)]
    assert rows == [["pass", "small"], ["FAIL", "large"], ["FAIL", "broken"]]
    assert "3 scripts: 1 pass, 2 fail" in checked.stdout and "over the budget of 300.0 MiB" in checked.stdout
    assert "step 0" not in checked.stdout + checked.stderr  # what scripts print is theirs
    assert re.search(r"^pass  small .* baseline ±0$", checked.stdout, re.M), checked.stdout
    answer = json.loads((project / "deep" / "check.json").read_text())
    assert (answer["schema"], answer["exit_code"]) == ("fathom.check/1", 1)
    verdicts = {script["name"]: script["report"]["verdict"] for script in answer["scripts"]}
    assert verdicts == {"small": "fits", "large | <b>": "does_not_fit", "broken": "script_failed"}
    small = answer["scripts"][0]["report"]["baseline"]
    assert small["change"] == "same" and small["categories"] == [] and small["modules"] == []


def test_junit_and_markdown_say_the_same(checked, project):
    suite = xml.parse(project / "deep" / "junit.xml").getroot().find("testsuite")
    assert [suite.get(key) for key in ("tests", "failures", "errors")] == ["3", "1", "1"]
    small, large, broken = suite.findall("testcase")
    assert small.find("failure") is None and large.get("name") == "large | <b>"
    assert "over the budget of 300.0 MiB" in large.find("failure").get("message")
    assert "exit code 7" in broken.find("error").text
    note = (project / "deep" / "note.md").read_text()
    assert "| small | rtx3090 | 298.0 MiB | 23.67 GiB | ±0 | fits |" in note
    assert "large \\| &lt;b&gt;" in note and "<b>" not in note and "**does not fit**" in note


def test_growth_is_named_and_annotated_at_its_line(fathom, project):
    (project / "summary.md").write_text("before\n")
    github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": project / "summary.md", "GITHUB_WORKSPACE": project.parent}
    flags = ("--gpu", "rtx3090", "--baseline", "memory/small.json", "--margin", "10%")
    report, done = fathom(PYTHON, "train.py", "4096", flags=flags, cwd=project, env=github)
    assert (done.returncode, report["verdict"], report["exit_code"]) == (1, "grew", 1)
    assert report["headline"].startswith("GREW  needs 346.0 MiB, 48.0 MiB (16.1 %) more than memory/small.json")
    against = report["baseline"]
    before = json.loads((project / "memory" / "small.json").read_text())
    assert against["device"]["before_bytes"] == before["peak"]["device_bytes"]
    assert against["allocated"]["after_bytes"] == report["peak"]["allocated_bytes"]
    # The changes of categories, and of modules, add up to that of the peak.
    grown = against["allocated"]["after_bytes"] - against["allocated"]["before_bytes"]
    for rows in (against["categories"], against["modules"]):
        assert sum(row["after_bytes"] - row["before_bytes"] for row in rows) == grown
    assert against["categories"][0]["name"] == "optimizer" and against["modules"][0]["class"] == "Linear"
    assert re.search(r"^ +optimizer +\+24\.3 MiB", done.stdout, re.M), done.stdout
    annotation = done.stdout.splitlines()[-1]
    assert annotation.startswith(f"::error file={project.name}/train.py,line=8,title=fathom%3A python train.py 4096 grew::GREW")
    summary = (project / "summary.md").read_text()
    assert summary.startswith("before\n### ❌ GPU memory") and "**grew**" in summary


def test_a_script_that_no_longer_uses_the_card_does_not_pass(fathom, project):
    flags = ("--gpu", "rtx3090", "--baseline", "memory/small.json")
    report, done = fathom(PYTHON, "-c", "pass", flags=flags, cwd=project)
    assert (done.returncode, report["verdict"]) == (3, "script_failed")
    assert "the script did not use the GPU, its baseline did" in done.stdout


def test_no_baseline_is_made_of_what_did_not_run(fathom, tmp_path):
    def save(text):
        return fathom.command("run", "--save-baseline", "b.json", "--", PYTHON, "-c", text, cwd=tmp_path)

    assert save("raise SystemExit(1)").returncode == 3
    done = save("pass")
    assert done.returncode == 2 and "`b.json` was not written: the script did not use the GPU" in done.stderr
    assert not (tmp_path / "b.json").exists()


# -- bad input, found before anything runs -------------------------------------------------------------


def test_baselines_that_cannot_be_used(fathom, project, tmp_path):
    def run(baseline, *flags):
        return fathom.command("run", "--baseline", baseline, *flags, "--", "no-such-program", cwd=project)

    assert_refused(run("nothing.json", "--gpu", "rtx3090"), "`nothing.json` cannot be read", "`--save-baseline FILE` writes one")
    foreign = tmp_path / "foreign.json"
    for text, why in (("{}", "no `schema`"), ("PK\x03", "not a baseline"), ('{"schema": "fathom.report/1"}', "`fathom.report/1`")):
        foreign.write_text(text)
        assert_refused(run(foreign, "--gpu", "rtx3090"), why, "`--save-baseline FILE` writes one")
    assert_refused(run(tmp_path, "--gpu", "rtx3090"), "is not a baseline", "`--save-baseline FILE`")
    assert_refused(run("memory/small.json", "--gpu", "a100-80g"), "another card: rtx3090, this run has a100-80g", "workspaces")
    assert_refused(run("memory/small.json", "--gpu", "rtx3090", "--margin", "much"), "`much` is not a margin", "for example")
    both = fathom.command("run", "--baseline", "a", "--save-baseline", "b", "--", "true")
    assert both.returncode == 2 and "cannot be used with" in both.stderr


@pytest.mark.parametrize(
    "toml, message, hint",
    [
        (None, "there is no `fathom.toml`", "write `fathom.toml` with"),
        ("steps = 1", "has no scripts", "write `fathom.toml` with"),
        ("[[script]]\ncommand = 'a'\n[[script]]\ncommand = 'a'", "two scripts with the name `a`", "give each its own `name`"),
        ("[[script]]\ncommand = \"python 'a\"", "without its end", "write `command = "),
        ("[[script]]\ncommand = 'a'\nbudgte = '1GiB'", "budgte", "known keys"),
        ("[[script]]\ncommand = 'a'\nbudget = 'lots'", "in the script `a`: `--budget`: `lots` is not a size", "for example"),
        ("[[script]]\ncommand = 'a'\nbaseline = 'b.json'", "the baseline `b.json` cannot be read", "`--save-baseline FILE`"),
        ("[[script]]\ncommand = 'no-such-program'", "`no-such-program` was not found", "check the spelling"),
    ],
)
def test_a_gate_that_makes_no_sense(fathom, tmp_path, toml, message, hint):
    if toml is not None:
        (tmp_path / "fathom.toml").write_text(toml)
    assert_refused(fathom.command("check", cwd=tmp_path), message, hint)


def test_names_that_are_not_there(fathom, project):
    done = fathom.command("check", "smal", cwd=project)
    assert_refused(done, "has no script `smal`", "it has: small, large | <b>, broken")
