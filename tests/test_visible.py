"""`CUDA_VISIBLE_DEVICES`: around the command, inside a script, in a child's environment."""

import json

import pytest

IS_WARM = True

NO_DEVICE = 100

# Says what the driver shows of the cards, without torch; the first argument is what the script itself sets, if anything.
SEES = """
import ctypes, json, os, sys
if len(sys.argv) > 1:
    os.environ["CUDA_VISIBLE_DEVICES"] = sys.argv[1]
cuda, count, cards, buses = ctypes.CDLL(None), ctypes.c_int(), [], []
cuda.cuInit(0)
code = cuda.cudaGetDeviceCount(ctypes.byref(count))
for device in range(count.value):
    uuid, bus = (ctypes.c_ubyte * 16)(), ctypes.c_int()
    cuda.cuDeviceGetUuid_v2(uuid, device)
    cuda.cudaDeviceGetAttribute(ctypes.byref(bus), 33, device)
    cards.append(uuid[15])  # a phantom's UUID ends with its number in the machine
    buses.append(bus.value)
print(json.dumps({"variable": os.environ.get("CUDA_VISIBLE_DEVICES"), "code": code, "cards": cards, "buses": buses}))
"""


@pytest.fixture
def sees(fathom):
    def look(around=None, inside=None, flags=()):
        words = [] if inside is None else [inside]
        report, done = fathom.code(SEES, flags=flags, env={"CUDA_VISIBLE_DEVICES": around}, arguments=words)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(done.stdout.splitlines()[0]), report, done

    return look


def test_around_the_command(sees):
    assert sees("3")[0] == {"variable": "3", "code": 0, "cards": [3], "buses": [4]}
    assert sees("2,0")[0] == {"variable": "2,0", "code": 0, "cards": [2, 0], "buses": [3, 1]}
    # Names of this machine's cards are others here.
    assert sees("GPU-5f1c,GPU-77aa")[0] == {"variable": "0,1", "code": 0, "cards": [0, 1], "buses": [1, 2]}


def test_it_hides_every_card(sees):
    for hides in ("", "-1"):
        seen, report, done = sees(hides)
        assert seen == {"variable": hides, "code": NO_DEVICE, "cards": [], "buses": []}
        assert "did not use the GPU" in done.stdout
        assert any(f"`CUDA_VISIBLE_DEVICES={hides}` in your shell hides every GPU" in note for note in report["notes"])


def test_a_flag_wins_over_the_shell(sees):
    for around in ("", "3", "GPU-5f1c"):
        seen, _, _ = sees(around, flags=("--gpus", "2"))
        assert seen == {"variable": None, "code": 0, "cards": [0, 1], "buses": [1, 2]}


def test_inside_a_script(sees):
    """A script that chooses its cards finds them; with `--gpus` there are no more than that."""
    assert sees(inside="5,1")[0]["cards"] == [5, 1]
    seen, _, done = sees(inside="1,0,7", flags=("--gpus", "2"))
    assert seen["cards"] == [1, 0]
    assert "names card 7, but there are 2" in done.stderr and "--gpus 8" in done.stderr
    seen, _, _ = sees(inside="-1")
    assert (seen["code"], seen["cards"]) == (NO_DEVICE, [])


def test_children_with_a_variable_of_their_own(fathom):
    """Each of two children gets another card of two: nothing is added up. UUIDs choose, too."""
    code = """
import os, subprocess, sys, torch
held = torch.empty(8 << 30, dtype=torch.uint8, device="cuda:0")
uuid = f"GPU-{torch.cuda.get_device_properties(1).uuid}"
child = "import torch; x = torch.empty(8 << 30, dtype=torch.uint8, device='cuda'); print(torch.cuda.device_count())"
for value in ("1", uuid):
    subprocess.run([sys.executable, "-c", child], env={**os.environ, "CUDA_VISIBLE_DEVICES": value}, check=True)
"""
    report, done = fathom.code(code, gpu="rtx3060-12g", flags=("--gpus", "2"))
    assert done.returncode == 0 and done.stdout.startswith("1\n1\n"), done.stdout + done.stderr
    assert report["peak"]["device_bytes"] == (8 << 30) + report["gpu"]["context_bytes"]


def test_cards_are_chosen_after_a_look_at_them(fathom):
    """NVML sees all cards whatever the variable says, and asking it settles nothing."""
    pytest.importorskip("pynvml")
    code = """
import os, pynvml
pynvml.nvmlInit()
handles = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
free = [pynvml.nvmlDeviceGetMemoryInfo(handle).free for handle in handles]
os.environ["CUDA_VISIBLE_DEVICES"] = "2"
import torch
x = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
used = [pynvml.nvmlDeviceGetMemoryInfo(handle).used >> 30 for handle in handles]
pids = [[p.pid for p in pynvml.nvmlDeviceGetComputeRunningProcesses(handle)] for handle in handles]
print(len(free), used, pids == [[], [], [os.getpid()]], torch.cuda.device_count())
"""
    _, done = fathom.code(code, flags=("--gpus", "3"))
    assert done.stdout.startswith("3 [0, 0, 1] True 1\n"), done.stdout + done.stderr
