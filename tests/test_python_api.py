"""`fathom.run` from Python and notebooks, and the pytest plugin. The package is used from the tree."""

import json
import os
import subprocess
import xml.etree.ElementTree as xml

import pytest
from conftest import FATHOM, PYTHON, ROOT, environment, missing

pytest_plugins = ["pytester"]

# Without NVIDIA's libraries torch can only be imported inside a run.
STEP = """
def step(width, batch=4, steps=1):
    import torch
    model = torch.nn.Linear(width, width).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        model(torch.randn(batch, width, device="cuda")).sum().backward()
        optimizer.step()
    print("not reached: three steps are enough")
"""
SCRIPT = """
import dataclasses, json
import fathom
from train import step

def main():
    report = fathom.run(step, 2048, kwargs={"batch": 8, "steps": 5}, gpu="rtx3090", ask=["empty_cache"])
    page = report.page("page.html")
    try:
        report.verdict = "fits"
    except dataclasses.FrozenInstanceError:
        print(json.dumps({"repr": repr(report), "fits": report.fits, "json": report.json, "html": report._repr_html_(),
            "peak": report.peak.reserved_bytes, "line": report.lines[0].line, "class": report.modules[-1].class_,
            "finding": report.findings[0].title, "output": report.output, "page": str(page), "frame": page._repr_html_()}))

def small(words):
    import torch
    print(words)
    torch.ones(1 << 28, device="cuda")

def refused():
    report = fathom.run(small, "<b>&", memory="600MiB", steps=0)
    print(json.dumps({"verdict": report.verdict, "html": report._repr_html_(), "output": report.output,
        "tried": report.out_of_memory.tried_bytes, "line": report.out_of_memory.line}))
    for wrong in (lambda: 1, print, report.page):
        try:
            fathom.run(wrong)
        except fathom.Error as error:
            print(json.dumps({"error": str(error), "hint": error.hint}))
    for options in ({"gpu": "rtx3091"}, {"baseline": "no.json"}):
        try:
            fathom.run("train.py", **options)
        except fathom.Error as error:
            print(json.dumps({"error": str(error), "hint": error.hint}))
    from train import step
    scripts = (("train.py", {"batch": 3}), ("train.py", {"kwargs": {"batch": 3}}))
    for target, options in (*scripts, (step, {"batch": 3}), (step, {"budgte": "1GiB"})):
        try:
            fathom.run(target, **options)
        except TypeError as error:
            print(json.dumps({"error": str(error)}))

if __name__ == "__main__":
    main()
    refused()
"""
# Cells as a kernel runs them: in `__main__`, which has no file, with their text where tracebacks look for it.
CELLS = [
    "import dataclasses, math as m\nimport fathom",
    "@dataclasses.dataclass\nclass Config:\n    width: int = 1024\nconfig = Config(2048)\nSCALE = 1",
    "def helper(number):\n    return int(m.sqrt(number * number)) * SCALE",
    "class Net:\n    def build(self):\n        import torch\n        return torch.nn.Linear(config.width, 10)",
    "def train(batch):\n    import torch\n    net = Net().build().cuda()\n"
    "    loss = net(torch.randn(helper(batch), config.width, device='cuda')).sum()\n    loss.backward()\n    print(config, batch)",
    "report = fathom.run(train, 16, gpu='rtx3090')\nprint(report.headline, report.output, report.lines[0].function)",
    "import threading\nlock = threading.Lock()\ndef locked():\n    return lock",
    "try:\n    fathom.run(locked)\nexcept fathom.Error as error:\n    print(error)",
]
KERNEL = """
import linecache, json, sys
for number, text in enumerate(json.load(open(sys.argv[1]))):
    name = f"cell {number}"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    exec(compile(text, name, "exec"), globals())
"""


def python(*words, folder):
    """The default Python with the package of the tree on its path."""
    if not FATHOM.exists() or not PYTHON.exists():
        missing(FATHOM, "run `make build`")
    done = subprocess.run(
        [PYTHON, *words],
        cwd=folder,
        env=environment({"PYTHONPATH": ROOT / "python"}),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What the script prints, one answer a line."""
    folder = tmp_path_factory.mktemp("api")
    (folder / "train.py").write_text(STEP)
    (folder / "script.py").write_text(SCRIPT)
    return [json.loads(line) for line in python("script.py", folder=folder).splitlines()]


def test_a_function_of_a_module(answers):
    answer = answers[0]
    report = answer["json"]
    assert answer["repr"].startswith("<fathom.Report FITS  NVIDIA GeForce RTX 3090: needs ")
    assert answer["fits"] and report["schema"] == "fathom.report/1" and report["steps"] == 3
    assert answer["peak"] == report["peak"]["reserved_bytes"] and answer["output"] == ""
    assert (answer["class"], answer["finding"]) == ("Linear", report["findings"][0]["title"])
    assert (report["lines"][0]["file"], answer["line"]) == ("train.py", report["lines"][0]["line"])
    assert report["answers"][0]["question"] == "empty_cache"


def test_a_report_in_a_notebook(answers):
    html, page = answers[0]["html"], answers[0]["page"]
    assert "FITS</b> NVIDIA GeForce RTX 3090" in html and "weights" in html and "<script" not in html
    assert len(html) < 10_000 and page.endswith("page.html")
    with open(page, encoding="utf-8") as file:
        assert "fathom.report/1" in file.read()
    assert answers[0]["frame"].startswith('<iframe srcdoc="&lt;!doctype html&gt;')


def test_a_function_of_the_script_that_does_not_fit(answers):
    answer = answers[1]
    assert (answer["verdict"], answer["tried"]) == ("does_not_fit", 1 << 30)
    assert SCRIPT.splitlines()[answer["line"] - 1].strip() == 'torch.ones(1 << 28, device="cuda")'
    assert "DOES NOT FIT</b>" in answer["html"] and answer["output"].startswith("<b>&\n")
    assert "script.py" in answer["html"]


def test_what_cannot_be_run_is_named(answers):
    texts = [answer["error"] for answer in answers[2:7]]
    assert [text.split("\n")[0] for text in texts] == [
        "`refused.<locals>.<lambda>` has no name at the top of its module",
        "`print` is not a plain function",
        "`Report.page` is not a plain function",
        "unknown GPU `rtx3091`",
        "the baseline `no.json` cannot be read: No such file or directory (os error 2)",
    ]
    assert answers[5]["hint"] == "did you mean `rtx3090`?"


def test_options_and_arguments_are_apart(answers):
    """`steps` of the function is not ours, and a misspelt option of ours is not the function's."""
    of_script, words, of_function, misspelt = [answer["error"] for answer in answers[7:]]
    assert of_script.startswith("fathom.run has no option 'batch'; options are kwargs, gpu, memory")
    assert words.startswith("kwargs are for a function")
    assert of_function == "fathom.run has no option 'batch'; keywords of your function go into kwargs={'batch': …}"
    assert misspelt == "fathom.run has no option 'budgte'; did you mean 'budget'?"


def test_a_function_of_a_notebook_takes_along_what_it_uses(tmp_path):
    (tmp_path / "cells.json").write_text(json.dumps(CELLS))
    lines = python("-c", KERNEL, "cells.json", folder=tmp_path).splitlines()
    assert lines[0].startswith("FITS  NVIDIA GeForce RTX 3090") and "Config(width=2048) 16" in lines[0]
    assert lines[1] == " train"
    assert lines[2].startswith("`locked` uses `lock`, which cannot be carried into a fresh process")
    assert lines[3] == "hint: make it inside `locked`, or write it to a module"


def test_files_of_the_users_beside_a_run_stay(tmp_path):
    mine = ["notebook.py", "call.json", "arguments.pickle", "values.pickle"]
    for name in mine:
        (tmp_path / name).write_text("mine")
    cells = ["import fathom", "def hello(word):\n    print(word)"]
    cells += ["for word in 'ab':\n    print(fathom.run(hello, word, out='.').output.splitlines()[0])"]
    cells += ["import os; os.rename('fathom-call/call.json', 'fathom-call/other.json')"]
    cells += ["try:\n    fathom.run(hello, 'c', out='.')\nexcept fathom.Error as error:\n    print(error)"]
    (tmp_path / "cells.json").write_text(json.dumps(cells))
    lines = python("-c", KERNEL, "cells.json", folder=tmp_path).splitlines()
    assert lines[:2] == ["a", "b"] and "is yours" in lines[2] and lines[3] == "hint: name another folder with `out`"
    assert [(tmp_path / name).read_text() for name in mine] == 4 * ["mine"]


def test_importing_the_package_costs_nothing(tmp_path):
    text = "import sys; before = set(sys.modules); import fathom; print(sorted(set(sys.modules) - before))"
    assert python("-c", text, folder=tmp_path).strip() == "['__future__', 'fathom']"


def test_record_can_be_used_twice(tmp_path):
    text = "import fathom\nfor _ in range(2):\n    print(type(fathom.record()).__name__)"
    assert python("-c", text, folder=tmp_path).split() == ["_GeneratorContextManager"] * 2


# -- pytest ---------------------------------------------------------------------------------------------

TESTS = """
import pytest

pytestmark = pytest.mark.fathom(gpu="rtx3090")

@pytest.fixture
def width():
    import torch
    assert torch.cuda.get_device_name() == "NVIDIA GeForce RTX 3090"
    return 2048

def train(width):
    import torch
    model = torch.nn.Linear(width, width).cuda()
    model(torch.randn(8, width, device="cuda")).sum().backward()

@pytest.mark.parametrize("budget", ["fits"])
def test_fits(width, tmp_path, budget):
    train(width)

@pytest.mark.fathom(budget="300MiB")
def test_over(width):
    train(width)

@pytest.mark.fathom(memory="500MiB", gpu=None)
def test_refused():
    import torch
    torch.ones(1 << 27, device="cuda")

def test_asserts():
    assert 3 == 4

@pytest.mark.xfail(reason="known", strict=True)
def test_known():
    assert False

def test_skips():
    pytest.skip("not today")

@pytest.mark.fathom(gpus="rtx3090")
def test_misspelt():
    pass
"""


def test_marked_tests_run_on_the_phantom(pytester, monkeypatch, fathom):
    for name in [name for name in os.environ if name.startswith(("PYTEST_", "FATHOM_")) and name != "FATHOM_CACHE"]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FATHOM_VERIFY", "on")
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    pytester.makepyfile(test_marked=TESTS, test_other="def test_other():\n    import sys\n    assert 'torch' not in sys.modules")
    words = ("-p", "fathom.pytest_plugin", "--strict-markers", "--junitxml", "junit.xml", "-p", "no:cacheprovider")
    result = pytester.run(PYTHON, "-m", "pytest", *words)
    result.assert_outcomes(passed=2, failed=4, skipped=1, xfailed=1)
    text = result.stdout.str()
    assert "fathom: DOES NOT FIT  needs 310.0 ± " in text and "MiB, over the budget of 300.0 MiB" in text
    assert "largest cause: " in text and "peak: allocated 40.3 MiB, reserved 54.0 MiB" in text
    assert "more than its 500.0 MiB; ran out of memory" in text and "tried to allocate 512.0 MiB at test_marked.py:" in text
    assert "E       assert 3 == 4" in text and "gpus is not known; it takes gpu" in text
    assert "not today" in (pytester.path / "junit.xml").read_text()
    cases = {case.get("name"): case for case in xml.parse(pytester.path / "junit.xml").iter("testcase")}
    assert cases["test_fits[fits]"].find("properties/property").get("value").startswith("FITS  NVIDIA GeForce RTX 3090")
