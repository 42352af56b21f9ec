"""What a run needs: the smallest GPU on which it goes through, found by running it there. And the first line of each answer."""

import re

import pytest
from conftest import PYTHON, SCRIPTS, sampled

IS_WARM = True

GIB, MIB = 1 << 30, 1 << 20
ON = {"FATHOM_VERIFY": "on"}

SOME = ["resnet_flags", "amp_transformer", "gan_two_optimizers"]
ALL = [*SOME, "bert_large_adamw", "resnet50_sgd", "sd_unet", "timm_vit", "gpt2_trainer", "lstm", "nn_transformer_adam"]
ALL += ["lightning_module", "record_stream"]

TRAINS = """
import torch
layer = torch.nn.Linear(4096, 4096).cuda()
optimizer = torch.optim.Adam(layer.parameters())
for _ in range(3):
    layer(torch.randn(16384, 4096, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""

# As generation without a static cache: every token asks for another size.
GROWS = """
import torch
caches = [torch.empty(1, 16, 0, 64, device="cuda", dtype=torch.float16)] * 48
for _ in range(600):
    caches = [torch.cat((cache, torch.zeros(1, 16, 1, 64, device="cuda", dtype=torch.float16)), 2) for cache in caches]
"""

# Takes the better way where there is room for it.
ADAPTS = """
import torch
layer = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(3):
    try:
        area = torch.empty(2 << 30, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        area = torch.empty(256 << 20, dtype=torch.uint8, device="cuda")
    layer(torch.randn(1024, 1024, device="cuda")).sum().backward()
    del area
    optimizer.step()
    optimizer.zero_grad()
"""

# On a small card every try empties the cache for nothing, twenty times in a step.
THRASHES = """
import torch
layer = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(3):
    for _ in range(20):
        try:
            area = torch.empty(2 << 30, dtype=torch.uint8, device="cuda")
        except torch.OutOfMemoryError:
            area = None
        del area
    layer(torch.randn(1024, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def head(report):
    return report["headline"]


@pytest.mark.parametrize("name", sampled(ALL, SOME[:1]))
def test_the_need_runs_and_less_does_not(fathom, name):
    report, done = fathom.script(name, env=ON, timeout=600)
    need = report["need"]
    assert need["known"] == "run" and need["bytes"] <= report["peak"]["device_bytes"], done.stdout

    def at(size):
        # What the machine holds of the card, the context, is the same on a card of another memory.
        return fathom.script(name, flags=("--memory", f"{size}B", "--record", "off"), timeout=600)[0]["verdict"]

    assert at(need["bytes"]) == "fits"
    assert at(need["bytes"] * 98 // 100) == "does_not_fit"


def test_what_is_only_cached_is_not_needed(fathom):
    report, _ = fathom.code(GROWS, env=ON)
    need, taken = report["need"], report["peak"]["device_bytes"]
    assert need["known"] == "run" and need["bytes"] * 10 < taken * 9
    assert re.search(r"needs .* MiB of 23.67 GiB \(.* free\); takes up to .* MiB as cache if there is room", head(report)), head(report)
    # A limit that is enough for the need passes, and one that is not does not.
    enough, too_little = f"{need['bytes']}B", f"{need['bytes'] * 9 // 10}B"
    for budget, verdict in ((enough, "fits"), (too_little, "does_not_fit")):
        report, done = fathom.code(GROWS, flags=("--budget", budget), env=ON)
        assert (report["verdict"], done.returncode) == (verdict, int(verdict != "fits")), head(report)


def test_a_run_that_adapts_to_its_card_needs_what_the_smallest_needs(fathom):
    report, _ = fathom.code(ADAPTS, env=ON)
    assert report["peak"]["device_bytes"] > 2 * GIB and report["need"]["known"] in ("run", "enough")
    assert 0.5 * GIB < report["need"]["bytes"] < 0.8 * GIB, head(report)


def test_a_card_on_which_the_cache_is_emptied_all_the_time_is_too_small(fathom):
    report, _ = fathom.code(THRASHES, env=ON)
    assert report["need"]["bytes"] > 2 * GIB and report["need"]["known"] == "run", head(report)


def test_without_a_gpu_the_need_is_the_answer(fathom):
    report, done = fathom(PYTHON, "-c", TRAINS, env=ON)
    assert re.match(r"NEEDS  2\.\d\d ± 0\.0\d GiB", head(report)) and report["judgement"] == "needs"
    assert (report["verdict"], done.returncode) == ("fits", 0)


def test_what_did_not_use_the_gpu_was_not_measured(fathom):
    report, done = fathom.code("import torch; torch.ones(3).sum()", env=ON)
    assert (report["judgement"], done.returncode, report["need"]) == ("not_measured", 0, None)
    assert done.stdout.startswith("NOT MEASURED  the script did not use the GPU")
    assert fathom.code("import torch", flags=("--strict",))[1].returncode == 1


def test_a_training_on_the_cpu_is_told_of_flags(fathom):
    text = TRAINS.replace(".cuda()", "").replace(', device="cuda"', "").replace("device='cuda'", "device='cpu'")
    assert "cuda" not in text
    report, done = fathom.code(text.replace("4096", "16"), flags=("--steps", "2"))
    assert report["judgement"] == "not_measured" and report["next"] == [], done.stdout
    assert "the script trained on the CPU: many scripts have a flag for the GPU" in done.stdout
    assert "no optimizer" not in done.stdout


def test_near_the_limit_it_is_tight(fathom):
    need = fathom.code(TRAINS, env=ON)[0]["need"]["bytes"]
    memory = f"{need + 4 * MIB}B"
    report, done = fathom.code(TRAINS, flags=("--memory", memory), env=ON)
    assert re.match(r"TIGHT  NVIDIA GeForce RTX 3090: needs [0-9.]+ ± [0-9.]+ of [0-9.]+ GiB \(4.0 MiB free\)", head(report)), head(report)
    assert (report["verdict"], report["judgement"], done.returncode) == ("fits", "tight", 0)
    assert report["next"] == [f"fathom fit --gpu rtx3090 --memory {memory} -- {PYTHON} -c '{TRAINS}'"]
    assert fathom.code(TRAINS, flags=("--memory", memory, "--strict"), env=ON)[1].returncode == 1
    assert fathom.code(TRAINS, flags=("--strict",), env=ON)[1].returncode == 0


def test_what_does_not_fit_says_what_it_would_need(fathom):
    words = (PYTHON, SCRIPTS / "resnet_flags.py")
    whole, _ = fathom(*words, flags=("--gpu", "rtx3090"), env=ON)
    memory = f"{whole['need']['bytes'] * 2 // 3}B"
    report, done = fathom(*words, flags=("--gpu", "rtx3090", "--memory", memory, "--all"), env=ON)
    assert (report["verdict"], done.returncode, report["need"]) == ("does_not_fit", 1, None), "a run that ran out shows no need"
    assert report["beyond"]["need"] == whole["need"]
    assert re.match(r"DOES NOT FIT  NVIDIA GeForce RTX 3090: needs .* more than its .*; ran out of memory in", head(report)), head(report)
    assert report["next"] == [f"fathom fit --gpu rtx3090 --memory {memory} -- {PYTHON} {SCRIPTS / 'resnet_flags.py'}"]
    assert "no limit run again without a limit: " in done.stdout and report["beyond"]["raised_by"] and report["beyond"]["cause"]
    # Without the second run nothing is said that is not known.
    report, done = fathom(*words, flags=("--gpu", "rtx3090", "--memory", memory, "--verify", "off"))
    assert "beyond" not in report and re.match(r"DOES NOT FIT  NVIDIA GeForce RTX 3090 with .* ran out of memory", head(report))


# Goes by what there is, and is wrong about it on this card alone.
MISCOUNTS = """
import torch
layer = torch.nn.Linear(1024, 1024).cuda()
total = torch.cuda.mem_get_info()[1]
cache = torch.empty(int(total * 0.999) if 20 << 30 < total < 30 << 30 else 1 << 30, dtype=torch.uint8, device="cuda")
optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
for _ in range(3):
    layer(torch.randn(1024, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_what_goes_through_on_a_smaller_gpu_is_not_said_to_need_more(fathom):
    report, done = fathom.code(MISCOUNTS, env=ON)
    need = report["beyond"]["need"]
    assert report["verdict"] == "does_not_fit" and need["known"] == "run" and need["bytes"] < 2 * GIB, done.stdout
    assert re.search(r"ran out of memory in .*; on a GPU of 1\.\d\d GiB it goes through$", head(report)), head(report)


CATCHES = """
import torch
for _ in range(3):
    try:
        torch.ones(1 << 20, device="cuda")
    except RuntimeError:
        print("caught")
"""


def test_a_script_that_catches_everything_still_needs_its_context(fathom):
    report, done = fathom(PYTHON, "-c", CATCHES, flags=("--gpu", "rtx3090"), env=ON)
    assert "caught" not in done.stdout.splitlines() and report["need"]["bytes"] > 256 << 20, done.stdout


def test_a_script_that_goes_on_with_less_is_said_to(fathom):
    """As `find_executable_batch_size` of accelerate does."""
    _, done = fathom.code(ADAPTS, env=ON)
    assert "catches out-of-memory errors and goes on with less" in done.stdout, done.stdout
