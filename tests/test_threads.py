"""Scripts with threads: what each does is recorded, and nothing is lost between them."""

import pytest
from test_anatomy import MIB, held

IS_WARM = True

VALUES = """
import threading
from concurrent.futures import ThreadPoolExecutor
import torch

def work():
    numbers = torch.arange(10, device="cuda") * 2
    found.append((numbers[numbers > 6].tolist(), numbers.sum().item()))

def in_a_thread():
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()

def in_a_pool():
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda _: work(), range(3)))

def in_a_daemon():
    thread = threading.Thread(target=lambda: [torch.nn.Linear(1, 1)(torch.ones(1)), work()], daemon=True)
    thread.start()
    thread.join()

for start in (work, in_a_thread, in_a_pool, in_a_daemon):
    found = []
    start()
    print(start.__name__, len(found), found)
    assert found and all(each == ([8, 10, 12, 14, 16, 18], 90) for each in found)
"""

# Another thread allocates, says what that is, and frees, at two moments after each step: before the history is cleared,
# and before what was taken is written.
MEANWHILE = """
import torch
from concurrent.futures import ThreadPoolExecutor
from fathom._doorway import functions

MIB = 1 << 20
recorder, other = None, ThreadPoolExecutor(1)
other.submit(print, "is there").result()

def meanwhile():
    kept.append(torch.empty(3 * MIB, dtype=torch.uint8, device="cuda"))
    recorder.note_taker.name("buffers", "made meanwhile", kept[-1])
    kept.pop(0)

def interrupted(inner):
    def call(*args, **kwargs):
        taken = inner(*args, **kwargs)
        other.submit(meanwhile).result()
        return taken
    return call

model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = [torch.empty(2 * MIB, dtype=torch.uint8, device="cuda")]
recorder = functions.install().recorder
inner = recorder.history.{moment}
recorder.history.{moment} = interrupted(inner)
for _ in range(5):
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
recorder.history.{moment} = inner
torch.empty(32 * MIB, dtype=torch.uint8, device="cuda")
"""

# A thread is in a module while others take steps, and allocates then; no function of torch says who it is.
LASTING = """
import threading
import torch

class Waits(torch.nn.Module):
    def forward(self, x):
        is_in.set()
        may_go.wait()
        torch.cuda.caching_allocator_alloc(5 << 20)
        return x

is_in, may_go = threading.Event(), threading.Event()
model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
other = threading.Thread(target=Waits(), args=(torch.ones(1, device="cuda"),))
other.start()
is_in.wait()
for _ in range(5):
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
may_go.set()
other.join()
torch.empty(32 << 20, dtype=torch.uint8, device="cuda")
"""

# A thread names what it has allocated in a part that began before the last one of another thread.
LATER = """
import torch
from concurrent.futures import ThreadPoolExecutor
from fathom._doorway import functions

def unseen():
    with torch._C.DisableTorchFunction():
        tensor = torch.empty(3 << 20, dtype=torch.uint8, device="cuda")
    functions.install().recorder.note_taker.name("buffers", "made later", tensor)
    return tensor

other = ThreadPoolExecutor(1)
other.submit(lambda: torch.ones(1, device="cuda")).result()
kept = [torch.ones(1, device="cuda"), other.submit(unseen).result()]
torch.empty(32 << 20, dtype=torch.uint8, device="cuda")
"""


def no_replay_differs(report):
    return not [note for note in report["notes"] if "replay" in note or "recorded" in note]


def test_threads_are_recorded_together(fathom):
    """Each takes steps and writes to one file: none may wait for another that waits for it."""
    report, done = fathom.script("threads", flags=("--steps", "0"))
    assert "trained 4" in done.stdout and "recording ends here" not in done.stderr, done.stderr
    assert report["steps"] == 30 and no_replay_differs(report), report["notes"]
    weights = sum(6 * width * (width + 1) * 4 for width in (128, 192, 256, 320))
    assert held(report)["weights"] == weights and held(report)["optimizer"] == weights
    assert held(report)["unknown"] == 0


@pytest.mark.parametrize("moment", ["events", "take"])
def test_what_a_thread_does_while_the_history_is_taken_is_kept(fathom, moment):
    report, done = fathom.code(MEANWHILE.format(moment=moment), flags=("--steps", "0"))
    assert done.returncode == 0 and "recording ends here" not in done.stderr, done.stderr
    assert no_replay_differs(report), report["notes"]
    # What the thread has freed is gone, and what it made last is there.
    assert held(report)["buffers"] == 3 * MIB, report["categories"]
    [tensor] = [row for row in report["tensors"] if row["name"] == "made meanwhile"]
    assert tensor["operator"] == "empty", tensor


def test_a_part_lasts_as_long_as_its_thread_is_in_it(fathom):
    report, done = fathom.code(LASTING, flags=("--steps", "0"))
    assert done.returncode == 0 and no_replay_differs(report), done.stderr
    assert {row["path"]: row["own_bytes"] for row in report["modules"]}.get("Waits") == 5 * MIB, report["modules"]


def test_what_is_said_comes_after_what_it_is_said_of(fathom):
    report, done = fathom.code(LATER)
    assert done.returncode == 0 and held(report)["buffers"] == 3 * MIB, done.stdout + done.stderr


def test_small_values_are_true_in_threads(fathom):
    _, done = fathom.code(VALUES)
    assert done.returncode == 0 and "in_a_daemon 1" in done.stdout, done.stdout + done.stderr
