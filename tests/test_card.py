"""Which card is meant: `--gpu`, `--memory` and `--used`, in every command, `fathom.toml`, the environment and Python."""

import json
import sys

import pytest
from conftest import PYTHON, ROOT, SCRIPTS

sys.path.insert(0, str(ROOT / "python"))
import fathom as package

IS_WARM = True

GIB = 1 << 30
EAGER = ROOT / "tests" / "recorded" / "kdr2-t2-None_fwd-eager_bwd.pickle"

# What a script sees of the card, and a step that needs about half a GiB.
SEES = """
import json, sys, torch
free, total = torch.cuda.mem_get_info()
model = torch.nn.Linear(4096, 4096).cuda()
optimizer = torch.optim.Adam(model.parameters())
model(torch.randn(64, 4096, device="cuda")).sum().backward()
optimizer.step()
name, properties = torch.cuda.get_device_name(), torch.cuda.get_device_properties(0)
print(json.dumps([name, free, total, properties.total_memory, torch.cuda.device_memory_used()]))
"""


def sees(done):
    return json.loads(next(line for line in done.stdout.splitlines() if line.startswith("[")))


def test_a_named_card_may_have_another_memory(fathom):
    """A slice of it (MIG), a limit of the scheduler's, another driver."""
    report, done = fathom.code(SEES, flags=("--memory", "20GiB"))
    name, free, total, of_properties, _ = sees(done)
    gpu = report["gpu"]
    assert (name, total, of_properties) == ("NVIDIA GeForce RTX 3090", 20 * GIB, 20 * GIB)
    assert gpu["name"] == "rtx3090" and gpu["memory_bytes"] == 20 * GIB and gpu["used_bytes"] == 0
    # The context is still that of such a card.
    assert gpu["context_known"] == "measured" and total - free - gpu["context_bytes"] < 100 << 20
    assert done.stdout.splitlines()[1].startswith("FITS  NVIDIA GeForce RTX 3090: needs ")


def test_others_hold_a_part_of_the_card(fathom, tmp_path):
    page = tmp_path / "page.html"
    report, done = fathom.code(SEES, flags=("--used", "2GiB", "--page", page, "--all"))
    name, free, total, _, used = sees(done)
    gpu, peak = report["gpu"], report["peak"]
    alone = fathom.code(SEES, flags=("--record", "off"))
    assert alone[0]["peak"]["device_bytes"] == peak["device_bytes"], "what others hold is not what the run needs"
    other_free, other_total = sees(alone[1])[1:3]
    assert (gpu["used_bytes"], total, free) == (2 * GIB, other_total, other_free - 2 * GIB)
    assert used >= 2 * GIB, "NVML counts it too"
    for ledger in (report["ledger"], report["peak_ledger"]):
        rows = {row["name"]: row["bytes"] for row in ledger}
        assert rows["programs"] == 2 * GIB
        assert rows["card"] == gpu["memory_bytes"]
        assert rows["card"] == rows["programs"] + rows["context"] + rows["free"] + rows["reserved"]
    line = " free, 2.00 GiB in use by others)"
    assert line in report["headline"] and "other programs 2.00 GiB" in done.stdout
    assert line in page.read_text()
    assert report["floor_bytes"] - alone[0]["peak"]["device_bytes"] > 1.5 * GIB


def test_what_others_hold_decides(fathom):
    """600 MiB are needed; of 23.67 GiB, 0.47 GiB are left."""
    report, done = fathom.code(SEES, flags=("--used", "98%"))
    assert (report["verdict"], done.returncode) == ("does_not_fit", 1)
    assert "23.67 GiB (23.20 GiB of it in use by others) ran out of memory" in report["headline"]
    # PyTorch's own words: the card's total, and this process apart from others.
    assert "total capacity of 23.67 GiB" in report["out_of_memory"]["message"]
    assert "this process has 4" in report["out_of_memory"]["message"], report["out_of_memory"]["message"]


@pytest.mark.parametrize("gigabytes, least", [(16, "14.57 GiB (t4)"), (24, "21.99 GiB (a10)")])
def test_gigabytes_are_read_as_on_the_box(fathom, gigabytes, least):
    """Every card that is sold so has as much: no verdict is too good, and the reading is said."""
    done = fathom.command("replay", EAGER, "--memory", f"{gigabytes}GB")
    first = done.stdout.splitlines()[0]
    assert first.startswith(f"FITS  into {least.split(' (')[0]} under"), done.stdout
    assert f"cards sold as {gigabytes} GB have from {least} to " in done.stdout
    done = fathom.command("replay", EAGER, "--memory", f"{gigabytes}GiB")
    assert f"into {gigabytes}.00 GiB" in done.stdout and "sold as" not in done.stdout


def test_every_command_reads_the_card_alike(fathom, tmp_path):
    blocks = (PYTHON, SCRIPTS / "blocks_flags.py", "--batch-size", "4")
    path = tmp_path / "answer.json"
    sweep = ("sweep", "--vary", "batch-size=4", "--quiet", "--json", path)
    done = fathom.command(*sweep, "--gpu", "rtx3090", "--memory", "20GiB,2GiB", "--used", "1GiB", "--", *blocks)
    answer = json.loads(path.read_text())
    cards = [(card["name"], card["memory_bytes"] // GIB, card["used_bytes"] // GIB) for card in answer["gpus"]]
    assert cards == [("rtx3090 20 GiB", 20, 1), ("rtx3090 2 GiB", 2, 1)], done.stderr
    assert "1.00 GiB of each card are in use by others" in answer["notes"]
    done = fathom.command("fit", "--memory", "16GB", "--used", "1GiB", "--quiet", "--json", path, "--", *blocks)
    answer = json.loads(path.read_text())
    assert answer["used_bytes"] == GIB and answer["budget_bytes"] == answer["memory_bytes"] - GIB, done.stderr
    assert done.stdout.startswith("FITS AS IT IS  a card with 14.57 GiB (1.00 GiB of it in use by others)")
    assert any(note.startswith("cards sold as 16 GB") for note in answer["notes"])
    done = fathom.command("replay", EAGER, "--gpu", "rtx3090", "--memory", "20GiB", "--used", "1GiB", "--json", path)
    assert done.stdout.startswith("FITS  NVIDIA GeForce RTX 3090 with 20.00 GiB (1.00 GiB of it in use by others)")
    assert "a context of 256.0 MiB (measured) and 1.00 GiB in use by others" in done.stdout
    # What others hold is part of the smallest card.
    floor = json.loads(path.read_text())["floor_bytes"]
    fathom.command("replay", EAGER, "--gpu", "rtx3090", "--json", path)
    assert floor - json.loads(path.read_text())["floor_bytes"] == GIB


def test_a_stronger_place_wins(fathom, tmp_path):
    """A card that is named brings its own memory; a memory alone is that of the card that is named elsewhere."""

    def doctor(toml, **env):
        (tmp_path / "fathom.toml").write_text(toml)
        done = fathom.command("doctor", "--", PYTHON, cwd=tmp_path, env=env)
        return " ".join(next(line for line in done.stdout.splitlines() if " card " in line or " settings " in line).split())

    slice_of = 'gpu = "rtx3090"\nmemory = "20GiB"\nused = "2GiB"'
    named = "NVIDIA GeForce RTX"
    assert f"{named} 3090 with 20.00 GiB (2.00 GiB of it in use by others), context 256.0 MiB" in doctor(slice_of)
    assert f"{named} 4090 with 23.64 GiB (2.00 GiB of it" in doctor(slice_of, FATHOM_GPU="rtx4090")
    assert f"{named} 3090 with 12.00 GiB, context" in doctor(slice_of, FATHOM_MEMORY="12GiB", FATHOM_USED="0")
    assert "a card with 14.57 GiB, context" in doctor('memory = "16GB"')
    assert "none: memory is unlimited" in doctor("steps = 2")
    assert doctor('memory = "16"').startswith("FAIL settings error: `--memory`: `16` has no unit")


def test_python_reads_the_card_alike():
    script = ROOT / "tests" / "scripts" / "import_only.py"
    report = package.run(script, python=PYTHON, gpu="rtx3090", memory=20 * GIB, used="2GiB", steps=0)
    assert (report.gpu.name, report.gpu.memory_bytes, report.gpu.used_bytes) == ("rtx3090", 20 * GIB, 2 * GIB)
    for wrong in ({"memory": 16}, {"memory": "16"}, {"budget": "5"}):
        with pytest.raises(package.Error, match="hint: "):
            package.run(script, python=PYTHON, **wrong)
