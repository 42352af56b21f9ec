"""A script that records its own memory history sees what it would see if it were not recorded."""

import inspect
import sys

import fathom
import pytest
import torch
from fathom._doorway import border

memory = torch.cuda.memory
HAS_TEXTS = hasattr(torch._C, "_cuda_setMemoryMetadata")
CAN_CLEAR = "clear_history" in inspect.signature(memory._record_memory_history).parameters


def work(count=3):
    kept = [torch.empty(1000 * (number + 1), device="cuda") for number in range(count)]
    return kept[0]


def train(model, optimizer):
    optimizer.zero_grad()
    model(torch.randn(64, 300, device="cuda")).sum().backward()
    optimizer.step()


def seen():
    """What a snapshot says, but for addresses and times."""
    snapshot = memory._snapshot()
    names = lambda place: [frame["name"] for frame in place["frames"]] if "frames" in place else None  # noqa: E731
    files = {frame["filename"] for trace in snapshot["device_traces"] for event in trace for frame in event.get("frames", ())}
    assert not [file for file in files if "python/fathom" in file]
    events = [(event["action"], event["size"], event.get("user_metadata"), names(event)) for event in snapshot["device_traces"][0]]
    blocks = [(block["state"], block["size"], names(block)) for part in snapshot["segments"] for block in part["blocks"]]
    return events, blocks, [names(part) for part in snapshot["segments"]]


def script():
    """Turns its history on and off, in every way, and looks at it each time."""
    torch._C._cuda_clearCublasWorkspaces()  # of the last time
    torch.cuda.empty_cache()
    model = torch.nn.Sequential(torch.nn.Linear(300, 300), torch.nn.ReLU(), torch.nn.Linear(300, 300)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    kept = [work()]
    yield "never on", seen()
    ways = [
        {"stacks": "python"},
        {"stacks": "python", "context": "alloc"},
        {"stacks": "python", "context": "state"},
        {"stacks": "python", "context": None},
        {"stacks": "python", "enabled": "state"},
        {"stacks": "python", "max_entries": 5},
        {"enabled": True, "trace_alloc_max_entries": 100, "trace_alloc_record_context": True},
        {"enabled": True},
        {"enabled": False},
    ]
    if CAN_CLEAR:
        ways += [{"stacks": "python", "skip_actions": ["free_requested"]}]
    for way in ways:
        memory._record_memory_history(**way)
        for _ in range(3):
            train(model, optimizer)
        kept.append(work())
        yield way, seen()
        if CAN_CLEAR:
            memory._record_memory_history(**way, clear_history=True)
            kept.append(work())
            yield ("cleared", way), seen()
        memory._record_memory_history(enabled=None)
        kept.append(work())
        yield ("off", way), seen()
    memory._record_memory_history(stacks="python")
    if HAS_TEXTS:
        memory._set_memory_metadata("mine") if hasattr(memory, "_set_memory_metadata") else torch._C._cuda_setMemoryMetadata("mine")
        train(model, optimizer)
        yield "text", (torch._C._cuda_getMemoryMetadata(), seen())
        torch._C._cuda_setMemoryMetadata("")
    with pytest.raises(torch.cuda.OutOfMemoryError):
        torch.empty(1 << 45, dtype=torch.uint8, device="cuda")
    seen()
    yield "twice", seen()
    with pytest.raises(RuntimeError):
        memory._record_memory_history("nonsense")
    yield "refused", seen()
    memory._record_memory_history(enabled=None)


def test_a_script_sees_its_own_history(fresh, refused, tmp_path):
    list(script())  # what is imported on the way is imported now
    plain = list(script())
    with fathom.record(str(tmp_path)):
        recorded = list(script())
    assert border.faults == []
    # Only which: pytest would compare thousands of frames for minutes.
    assert [way for (way, expected), (_, found) in zip(plain, recorded, strict=True) if found != expected] == []
    # Ours is complete even so.
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".fathom"]


def test_a_script_whose_recording_fails_keeps_its_history(fresh, tmp_path, capsys):
    from fathom._doorway import native

    memory._record_memory_history(enabled=None)
    with fathom.record(str(tmp_path)):
        memory._record_memory_history(stacks="python")
        kept = [work()]
        native.fail_at("a node")
        weight = torch.ones(300, 300, device="cuda", requires_grad=True)
        weight.sum().backward()
        native.fail_at()
        kept.append(work())
        events, *_ = seen()
    memory._record_memory_history(enabled=None)
    border.faults.clear()
    assert "the recording ended" in capsys.readouterr().err
    assert len([action for action, *_ in events if action == "alloc"]) >= 8 and len(kept) == 2
    assert sys.maxsize > len(events)


@pytest.mark.skipif(not HAS_TEXTS, reason="this torch has no texts of events")
def test_texts_of_a_recording_that_broke_off_are_not_seen(fresh, tmp_path, capsys):
    """Autograd's own thread keeps the last one, where nobody can take it back."""
    from fathom._doorway import native

    weights = torch.ones(300, 300, device="cuda", requires_grad=True)
    with fathom.record(str(tmp_path)):
        native.fail_at("after a function", "begin", False)
        (weights @ weights).sum().backward()
        native.fail_at("a node", "end", True)
        (weights @ weights).sum().backward()
        native.fail_at()
    border.faults.clear()
    memory._record_memory_history(stacks="python")
    (weights @ weights).sum().backward()
    events, *_ = seen()
    memory._record_memory_history(enabled=None)
    assert {text for action, _, text, _ in events if action == "alloc"} == {""}
