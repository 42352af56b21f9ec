"""The stand-in for `nvidia-smi`: NVML's numbers, in the forms that scripts and tools read."""

import json
import os
import re
from pathlib import Path

import pytest
from conftest import PYTHON, ROOT, missing

TOOLS = Path(os.environ.get("FATHOM_TOOLS_PYTHON", ROOT / ".venvs" / "tools" / "bin" / "python"))

# Two cards, of which the second is used by this process and a child of it.
HOLDS = """
import json, os, subprocess, sys
import torch
held = torch.empty(3 << 30, dtype=torch.uint8, device="cuda:1")
def smi(*words):
    done = subprocess.run(["nvidia-smi", *words], capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else (done.returncode, done.stdout)
"""
TWO = ("--gpu", "rtx3090", "--gpus", "2", "--used", "1GiB")


def said(fathom, code, *flags, python=PYTHON, env=None):
    """What a script prints as JSON."""
    flags = flags or TWO
    flags = (*flags, "--steps", "0", "--record", "off")
    _, done = fathom(python, "-c", HOLDS + code, flags=flags, env=env or {})
    lines = [line for line in done.stdout.splitlines() if line.startswith(("{", "["))]
    assert lines, done.stdout + done.stderr
    return json.loads(lines[0])


def test_numbers_are_those_of_nvml(fathom):
    """Queries, the table and pynvml say the same, of each card and each process."""
    pytest.importorskip("pynvml")
    code = """
import pynvml
pynvml.nvmlInit()
cards = [pynvml.nvmlDeviceGetHandleByIndex(i) for i in range(pynvml.nvmlDeviceGetCount())]
text = lambda value: value.decode() if isinstance(value, bytes) else value
memory = [pynvml.nvmlDeviceGetMemoryInfo(card) for card in cards]
pci = [pynvml.nvmlDeviceGetPciInfo(card) for card in cards]
nvml = [[i, text(pynvml.nvmlDeviceGetName(c)), text(pynvml.nvmlDeviceGetUUID(c)), m.total >> 20, m.used >> 20, m.free >> 20,
    pynvml.nvmlDeviceGetTemperature(c, 0), pynvml.nvmlDeviceGetUtilizationRates(c).gpu, text(pynvml.nvmlSystemGetDriverVersion()),
    ".".join(map(str, pynvml.nvmlDeviceGetCudaComputeCapability(c))), pynvml.nvmlDeviceGetPowerUsage(c) / 1000,
    text(p.busId), pynvml.nvmlDeviceGetClockInfo(c, 1), pynvml.nvmlDeviceGetClockInfo(c, 2), hex(p.pciDeviceId).upper()]
    for i, (c, m, p) in enumerate(zip(cards, memory, pci))]
users = [[p.pid, p.usedGpuMemory >> 20] for c in cards for p in pynvml.nvmlDeviceGetComputeRunningProcesses(c)]
fields = ("index,name,uuid,memory.total,memory.used,memory.free,temperature.gpu,utilization.gpu,driver_version,compute_cap,"
    "power.draw,pci.bus_id,clocks.sm,clocks.mem,pci.device_id")
print(json.dumps({"nvml": nvml, "users": users, "pid": os.getpid(), "table": smi(),
    "gpus": smi("--query-gpu=" + fields, "--format=csv,noheader,nounits"),
    "apps": smi("--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits")}))
"""
    found = said(fathom, code)
    rows = [row.split(", ") for row in found["gpus"].splitlines()]
    for row, known in zip(rows, found["nvml"]):
        cells = [cell if isinstance(value, str) else type(value)(cell) for cell, value in zip(row, known)]
        assert [str(cell).upper() for cell in cells] == [str(value).upper() for value in known]
    assert found["nvml"][1][4] > 4096 > found["nvml"][0][4] >= 1024  # what others use counts on each card
    users = [list(map(int, row.split(", "))) for row in found["apps"].splitlines()]
    assert users == found["users"] and {pid for pid, _ in users} == {found["pid"]}
    for _, name, _, total, used, *_ in found["nvml"]:
        assert re.search(rf"\| +{used}MiB / +{total}MiB \|", found["table"]) and name in found["table"], found["table"]
    assert re.search(rf"\|    1   N/A  N/A +{found['pid']} +C   \S*python\S* +{users[-1][1]}MiB \|", found["table"])


def test_usual_forms(fathom):
    code = """
print(json.dumps({
    "list": smi("-L"), "csv": smi("--query-gpu=name,memory.total", "--format=csv", "-i", "1"),
    "one": smi("--id=0", "--query-gpu", "count", "--format", "csv,noheader"),
    "field": smi("--query-gpu=nmae", "--format=csv"), "no format": smi("--query-gpu=name"), "id": smi("-i", "7", "-L"),
    "topo": smi("topo", "-m"), "fields": smi("--help-query-gpu"), "which": __import__("shutil").which("nvidia-smi")}))
"""
    found = said(fathom, code)
    assert re.fullmatch(r"GPU 0: NVIDIA GeForce RTX 3090 \(UUID: GPU-[\w-]+\)\nGPU 1: .*\n", found["list"])
    assert re.fullmatch(r"name, memory.total \[MiB\]\nNVIDIA GeForce RTX 3090, \d+ MiB\n", found["csv"])
    assert found["one"] == "2\n"
    code, text = found["field"]
    assert code == 2 and text.startswith('Field "nmae" is not a valid field to query.')
    assert found["no format"][0] == 1 and found["id"] == [6, "No devices were found\n"]
    assert found["topo"][0] == 1 and "does not know `topo`" in found["topo"][1] and "memory.free" in found["fields"]
    assert found["which"].endswith("/nvidia-smi")


def test_the_long_form_as_many_scripts_read_it(fathom):
    code = """
text = subprocess.run("nvidia-smi -q -d Memory | grep -A4 GPU | grep Free", shell=True, capture_output=True, text=True).stdout
free = [int(line.split()[2]) for line in text.splitlines()]
print(json.dumps([free, smi("--query-gpu=memory.free", "--format=csv,noheader,nounits"), smi("-q"), smi("-q", "-x")]))
"""
    free, asked, whole, xml = said(fathom, code)
    assert free == [int(line) for line in asked.split()] and free[0] > free[1] + 3000
    assert "Product Name" in whole and "Process ID" in whole and xml[0] == 1


def test_memory_comes_back_when_a_process_ends(fathom):
    code = """
ask = ("--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0")
before = int(smi(*ask))
child = "import torch, sys; x = torch.empty(2 << 30, dtype=torch.uint8, device='cuda:0'); print('x', flush=True); sys.stdin.read()"
process = subprocess.Popen([sys.executable, "-c", child], stdin=-1, stdout=-1)
process.stdout.readline()
during = int(smi(*ask))
process.communicate()
print(json.dumps([before, during, int(smi(*ask))]))
"""
    before, during, after = said(fathom, code)
    assert during > before + 2048 and after == before


def test_torch_reads_it(fathom):
    """`torch.utils.collect_env`, which every bug report asks for."""
    code = """
from torch.utils import collect_env
info = collect_env.get_env_info()
print(json.dumps([info.nvidia_driver_version, info.nvidia_gpu_models]))
"""
    driver, models = said(fathom, code)
    assert re.fullmatch(r"\d+\.\d+\.\d+", driver) and models == "GPU 0: NVIDIA GeForce RTX 3090\nGPU 1: NVIDIA GeForce RTX 3090"


# -- the usual parsers ------------------------------------------------------------------------------------


@pytest.fixture
def tools():
    if not TOOLS.exists():
        missing(ROOT / ".venvs" / "tools", "make .venvs/tools/tools.stamp")
    return TOOLS


def test_gputil(fathom, tools):
    code = """
import GPUtil
print(json.dumps([[g.id, g.name, g.memoryTotal, g.memoryUsed, g.driver] for g in GPUtil.getGPUs()]))
"""
    first, second = said(fathom, code, python=tools)
    assert first[:2] == [0, "NVIDIA GeForce RTX 3090"] and second[3] > first[3] + 3000


def test_gpustat(fathom, tools):
    code = """
import gpustat
stats = gpustat.new_query().jsonify()["gpus"]
print(json.dumps([[g["memory.total"], g["memory.used"], [p["pid"] for p in g["processes"]], os.getpid()] for g in stats]))
"""
    first, second = said(fathom, code, python=tools)
    assert second[2] == [second[3]] and second[1] > first[1] + 3000 and second[0] > 24000


def test_nvitop(fathom, tools):
    code = """
from nvitop import Device
print(json.dumps([[d.name(), d.memory_used() >> 20, d.memory_total() >> 20, sorted(d.processes())] for d in Device.all()]))
"""
    first, second = said(fathom, code, python=tools)
    assert first[0] == "NVIDIA GeForce RTX 3090" and len(second[3]) == 1 and second[1] > first[1] + 3000
