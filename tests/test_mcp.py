"""`fathom mcp`, driven by the protocol's own Python client: tools, a real run, questions, a failure, a cancellation."""

import json
import subprocess
import time
from pathlib import Path

import pytest
from conftest import FATHOM, PYTHON, ROOT, SCRIPTS, environment, missing

IS_WARM = True

# Trials are made, as for a user.
USERS = environment({"FATHOM_VERIFY": None, "FATHOM_WHOLE_RUN": None})

CLIENT = ROOT / ".venvs" / "mcp" / "bin" / "python"

FIRST = {"command": [str(PYTHON), "train.py"], "folder": str(ROOT / "examples" / "first")}
LOCAL = {"folder": str(SCRIPTS)}

# Its trials take a part of a second each.
SMALL = """
import torch
model = torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.ReLU(), torch.nn.Linear(512, 512)).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for step in range(5):
    model(torch.randn(4096, 512, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""

CALLS = [
    {"tool": "gpus", "arguments": {"name": "3090"}},
    {"tool": "run", "arguments": {**FIRST, "gpu": "rtx3090", "quick": True}},
    {
        "tool": "ask",
        "arguments": {**FIRST, "questions": ["checkpoint", "don't use amp", "batch 512", "will it fit on an RTX 3090?", "pray"]},
    },
    {"tool": "run", "arguments": {"command": [str(PYTHON), "fails.py"], **LOCAL, "quick": True}},
    {"tool": "run", "arguments": {"command": [], **LOCAL}},
    {"tool": "run", "arguments": {"command": [str(PYTHON), "fails.py"], "folder": "tests"}},
    {"tool": "run", "arguments": {**FIRST, "gpu": "rtx9999"}},
    {"tool": "run", "arguments": {"folder": str(SCRIPTS)}},
    {"tool": "explain", "arguments": {**LOCAL, "text": "CUDA out of memory. Tried to allocate 2.00 GiB."}},
    {"tool": "run", "arguments": {"command": [str(PYTHON), "sleeps.py"], **LOCAL, "quick": True, "limit_seconds": 3}},
    {"tool": "run", "arguments": {**FIRST, "quick": True, "limit_host_memory": "20MiB"}},
    {"tool": "run", "arguments": {"command": [str(PYTHON), "-c", "import time; time.sleep(300)"], **LOCAL}, "cancel_after": 4},
    {"tool": "gpus", "arguments": {"name": "h100"}},
]


def drive(calls):
    if not CLIENT.exists():
        missing(CLIENT, "NO CLIENT IS TRIED; `make .venvs/mcp/mcp.stamp` installs it")
    words = [CLIENT, ROOT / "tests" / "mcp_client.py", FATHOM, json.dumps(calls)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=400, env=USERS)
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def session():
    return drive(CALLS)


def error_of(answer):
    assert answer["is_error"], answer
    (text,) = answer["texts"]
    assert "hint: " in text and "Traceback" not in text.split("hint: ")[1], text
    return text


def test_all_tools_are_listed_with_their_schemas(session):
    assert session["server"] == "fathom"
    names = [name for name, _, _ in session["tools"]]
    assert names == ["run", "ask", "fit", "sweep", "report", "explain", "diff", "gpus"]
    for name, takes, gives in session["tools"]:
        assert takes["type"] == "object" and gives["type"] == "object", name
        undescribed = [key for key, field in takes["properties"].items() if not field.get("description")]
        assert not undescribed, f"{name}: an agent cannot know what {undescribed} are"
        assert "oneOf" not in takes and "anyOf" not in takes, "flat inputs are what agents get right"


def test_gpus_are_found_by_name(session):
    (card,) = [row for row in session["answers"][0]["answer"]["gpus"] if row["name"] == "rtx3090"]
    assert card["usable_bytes"] < card["memory_bytes"] < 24 * 2**30
    assert session["answers"][-1]["answer"]["gpus"], "the server still answers at the end"


def test_a_run_gives_numbers_and_how_each_is_known(session, fathom):
    answer = session["answers"][1]["answer"]
    assert answer["judgement"] == "fits" and answer["headline"].startswith("FITS"), answer["headline"]
    report, _ = fathom(PYTHON, "train.py", flags=("--gpu", "rtx3090"), cwd=FIRST["folder"])
    assert answer["peak"]["allocated"]["bytes"] == report["peak"]["allocated_bytes"]
    assert answer["peak"]["allocated"]["known"] == "measured"
    assert answer["peak"]["device"]["known"] in ("modelled", "assumed"), "the context is not PyTorch's"
    assert [cause["title"] for cause in answer["causes"]] == [row["title"] for row in report["findings"]][:6]
    told = session["answers"][1]["told"]
    assert told and [seconds for seconds, _ in told] == sorted(seconds for seconds, _ in told)


def test_questions_are_answered_by_trials(session):
    answers = {row["question"]: row for row in session["answers"][2]["answer"]["answers"]}
    checkpoint = answers["checkpoint"]
    assert checkpoint["effect"] == "lowers" and checkpoint["known"] == "measured", checkpoint
    assert checkpoint["after"]["bytes"] < checkpoint["before"]["bytes"]
    assert answers["don't use amp"]["effect"] == "none"
    assert answers["batch 512"]["effect"] == "worse", "the batch is 256"
    assert answers["will it fit on an RTX 3090?"]["effect"] == "fact"
    assert answers["pray"]["effect"] == "unknown"


def test_what_goes_wrong_is_an_error_with_a_hint(session):
    failed, wordless, relative, nameless, incomplete = session["answers"][3:8]
    assert "the script failed, but not for memory" in error_of(failed)
    assert failed["answer"]["judgement"] == "script_failed", "what is known stands beside the error"
    assert "no command is named" in error_of(wordless)
    assert "no absolute path" in error_of(relative)
    assert "rtx9999" in error_of(nameless)
    assert "missing field `command`" in error_of(incomplete)


def test_a_message_is_explained(session):
    assert "2.00 GiB" in json.dumps(session["answers"][8]["answer"])


def test_limits_end_a_call(session):
    slow, large = session["answers"][9:11]
    assert "more than 3 s" in error_of(slow)
    assert "host's memory" in error_of(large)


def test_a_cancelled_call_leaves_no_process(session):
    cancelled = session["answers"][11]
    assert cancelled["cancelled"] and cancelled["processes"] > 1, "it had begun"
    assert cancelled["left"] == 1, "only the server is left"


@pytest.fixture(scope="module")
def documents(tmp_path_factory):
    """The tool `report`: of a small script, of one that fails, one that is cancelled, and of the small one once more."""
    folder = tmp_path_factory.mktemp("documents")
    (folder / "train.py").write_text(SMALL)
    (folder / "fails.py").write_text("raise KeyError('no such column')\n")
    script = {"command": [str(PYTHON), "train.py"], "folder": str(folder), "gpu": "rtx3060-12g"}
    calls = [
        {"tool": "report", "arguments": {**script, "output": "MEMORY.md"}},
        {"tool": "report", "arguments": {**script, "command": [str(PYTHON), "fails.py"], "output": "FAILS.md"}},
        {"tool": "report", "arguments": {**script, "output": "CUT.md"}, "cancel_after": 3},
        {"tool": "gpus", "arguments": {"name": "h100"}},
    ]
    return folder, drive(calls)["answers"]


def test_a_document_is_written_and_given_back(documents):
    folder, answers = documents
    answer = answers[0]
    assert not answer["is_error"], answer["texts"]
    document = answer["answer"]["document"]
    assert document == (folder / "MEMORY.md").read_text() and not answer["answer"]["unfinished"]
    assert "**FITS**" in document and "## What was tried" in document
    assert len(answer["told"]) > 1, "the client hears how far it is"


def test_a_script_that_fails_has_no_document_of_numbers(documents):
    text = error_of(documents[1][1])
    assert "no such column" in text or "no such column" in json.dumps(documents[1][1]["answer"]), text


def test_a_document_can_be_cancelled_and_the_server_goes_on(documents):
    folder, answers = documents
    assert answers[2]["cancelled"] and answers[2]["left"] == 1, answers[2]
    assert not answers[3]["is_error"]
    assert not list(folder.glob("tmp*")), "nothing of it is left"


@pytest.mark.matrix
def test_the_document_of_the_first_example(tmp_path):
    for name in ("train.py", "README.md"):
        (tmp_path / name).write_text((ROOT / "examples" / "first" / name).read_text())
    arguments = {**FIRST, "folder": str(tmp_path), "gpu": "rtx3060-12g", "output": "MEMORY.md"}
    answer = drive([{"tool": "report", "arguments": arguments}])["answers"][0]
    assert not answer["is_error"], answer["texts"]
    assert "does not fit" in answer["answer"]["document"]


def test_a_server_that_is_killed_takes_its_runs_along(tmp_path):
    """A client that is killed closes the pipes; one that kills the server does not even ask."""
    script = "import time; open('pid', 'w').write(str(__import__('os').getpid())); time.sleep(300)"
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    arguments = {"command": [str(PYTHON), "-c", script], "folder": str(tmp_path), "quick": True}
    messages = [
        {"id": 1, "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "run", "arguments": arguments}},
    ]
    server = subprocess.Popen([str(FATHOM), "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=USERS, text=True)
    for message in messages:
        server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        server.stdin.flush()
    path = tmp_path / "pid"
    wait_for(lambda: path.exists() and path.read_text())
    script_pid = path.read_text()
    server.kill()
    server.wait()
    wait_for(lambda: not Path(f"/proc/{script_pid}").exists())


def wait_for(condition, seconds=40):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)
