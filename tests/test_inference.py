"""Steps of scripts without an optimizer, and inference: what is counted, which phases and categories it has, what is advised."""

import re

import pytest
from conftest import PYTHON, sampled

IS_WARM = True

STEPS = 3
# What helps a training and nothing else.
OF_TRAINING = {"accumulate", "checkpoint", "freeze", "zero-grad", "batch", "offload", "sgd"}


@pytest.fixture(scope="module")
def run(fathom):
    """A way of a script, run once."""
    done = {}

    def of(script, way, flags=(), timeout=240):
        key = (script, way, *flags)
        if key not in done:
            done[key] = fathom.script(script, way, flags=flags, timeout=timeout)
        return done[key]

    return of


def rounds(done):
    return len(re.findall(r"^ROUND", done.stdout, re.M))


def phases(report):
    return {row["name"] for row in report["phases"]}


def categories(report):
    return {row["name"]: row["bytes"] for row in report["categories"]}


def finding(report, wanted):
    return next(row for row in report["findings"] if row["id"] == wanted)


def remedies(report):
    return {remedy["id"] for row in report["findings"] for remedy in row["remedies"]}


@pytest.mark.parametrize("way", ["data", "in_place", "lists"])
def test_an_update_by_hand_is_a_step(run, way):
    report, done = run("by_hand", way)
    assert (report["verdict"], report["steps"], report["stopped"]) == ("fits", STEPS, True), done.stdout
    assert rounds(done) == STEPS + 1  # the fourth says that the third update is over
    assert {"construction", "forward", "backward", "before_optimizer", "optimizer", "evaluation"} <= phases(report)
    assert "inference" not in phases(report)
    held = categories(report)
    parameters = report["parameters"]["total"]
    assert held["weights"] == 4 * parameters and held["gradients"] > 0
    assert "a step is an update of the weights that the script writes itself" in done.stdout
    assert not {row["id"] for row in report["findings"]} & {"unused-parameters", "kv-cache"}


def test_an_update_of_a_foreach_is_as_one_of_an_optimizer(run):
    """What the update itself makes: nothing in place, a product for each parameter otherwise."""
    in_place, lists = (run("by_hand", way)[0] for way in ("in_place", "lists"))
    peak = lambda report: max(row["peak_allocated_bytes"] for row in report["phases"] if row["name"] == "optimizer")  # noqa: E731
    assert peak(in_place) >= peak(lists)


def test_two_updates_are_two_optimizers(run):
    report, done = run("by_hand", "gan")
    assert (report["steps"], rounds(done), report["stopped"]) == (STEPS, STEPS + 1, True), done.stdout
    held = categories(report)
    assert held["weights"] == held["gradients"] == 4 * report["parameters"]["total"]


def test_batches_before_an_update_are_no_steps(run):
    report, done = run("by_hand", "accumulated")
    assert (report["steps"], rounds(done)) == (STEPS, 4 * STEPS + 1), done.stdout


def test_backward_passes_without_an_update_are_rounds(run):
    report, done = run("by_hand", "without_modules")
    assert (report["steps"], rounds(done), report["stopped"]) == (STEPS, STEPS + 1, True), done.stdout
    assert "a step is a round of backward passes" in done.stdout


@pytest.mark.parametrize("way", ["data", "gan", "without_modules"])
def test_the_same_updates_are_counted_without_a_recording(run, way):
    report, done = run("by_hand", way, ("--record", "off"))
    assert (report["steps"], rounds(done)) == (STEPS, STEPS + 1), done.stdout


@pytest.mark.parametrize("way", sampled(["generate", "evaluation"], ["evaluation"]))
def test_the_same_rounds_are_counted_without_a_recording(run, way):
    recorded, plain = run("inference", way)[0], run("inference", way, ("--record", "off"))[0]
    assert recorded["steps"] == plain["steps"] and recorded["stopped"] == plain["stopped"]
    assert recorded["peak"]["allocated_bytes"] == plain["peak"]["allocated_bytes"]


@pytest.mark.parametrize(("way", "batch"), [("generate", 3), ("static", 3), ("beams", 3)])
def test_generate_runs_to_its_full_length(run, way, batch):
    report, done = run("inference", way)
    assert (report["verdict"], report["steps"], report["stopped"]) == ("fits", STEPS, True), done.stdout
    assert re.findall(r"^ROUND \d \((\d+), (\d+)\)", done.stdout, re.M) == [(str(batch), "32")] * STEPS
    assert re.search(r"`generate` at .*inference.py:\d+ runs to its full length: 22 tokens \(assumed", done.stdout)
    assert phases(report) == {"construction", "inference"}
    # 2 × layers × heads of keys × numbers of a head × bytes
    assert "512 bytes for each token of each sequence" in finding(report, "kv-cache")["explanation"]
    assert not remedies(report) & OF_TRAINING


def test_a_static_cache_is_as_long_as_it_will_be(run):
    report, _ = run("inference", "static")
    tokens, batch = 10 + 22 - 1, 3  # the last token is not given to the model
    assert categories(report)["kv_cache"] == 2 * 2 * 2 * 32 * 2 * tokens * batch
    assert "static-cache" not in remedies(report) and "quantised-cache" in remedies(report)


def test_a_loop_of_the_script_samples_to_its_end(run):
    """A token that nobody knows is none of those that end a text, and a number like any other."""
    report, done = run("inference", "sampled")
    assert re.findall(r"^ROUND \d (\d+) (\d+)", done.stdout, re.M) == [("30", "0")] * STEPS, done.stdout
    assert (report["steps"], report["verdict"]) == (STEPS, "fits")
    assert "tokens read at tests/scripts/inference.py" in done.stdout
    cache = finding(report, "kv-cache")
    each, tokens = 2 * 2 * 8 * 128 * 4, 39
    assert f"{each:,} bytes for each token of each sequence, {each * tokens * 2:,} bytes in all" in cache["explanation"]
    # At the peak keys and values are there as they are, and, while the caller holds them, as they were.
    assert categories(report)["kv_cache"] == each * 2 * (tokens + tokens - 1)
    room = re.search(r"By arithmetic, .*: ([\d,]+) tokens at this batch, or a batch of ([\d,]+)", cache["explanation"])
    longer, wider = (int(number.replace(",", "")) for number in room.groups())
    free = next(row["bytes"] for row in report["ledger"] if row["name"] == "free")
    assert longer >= tokens + free // (2 * each) and wider >= 2 + free // (tokens * each)
    assert {"context", "fewer-sequences", "half-weights"} <= remedies(report) and not remedies(report) & OF_TRAINING


def test_an_evaluation_is_inference(run):
    report, done = run("inference", "evaluation")
    assert (report["steps"], report["stopped"]) == (STEPS, True), done.stdout
    assert phases(report) == {"construction", "inference"} and report["peak"]["phase"] == "inference"
    held = categories(report)
    assert held["weights"] == 4 * report["parameters"]["total"]
    assert held["kv_cache"] == held["activations"] == held["gradients"] == 0
    assert {"half-weights", "fewer-sequences"} <= remedies(report) and not remedies(report) & OF_TRAINING


def test_an_evaluation_that_builds_a_graph_is_told(run):
    report, done = run("inference", "with_gradients")
    assert (report["steps"], report["stopped"]) == (STEPS, True), done.stdout
    first = report["findings"][0]
    assert (first["id"], first["title"]) == ("evaluation-with-grad", "inference runs without torch.no_grad()")
    assert report["peak"]["allocated_bytes"] > run("inference", "evaluation")[0]["peak"]["allocated_bytes"]


def test_a_picture_is_made_to_its_end(run):
    report, done = run("inference", "pipeline")
    assert done.stdout.count("DECODED (2, 3, 32, 32)") >= STEPS, done.stdout
    assert (report["verdict"], report["stopped"]) == ("fits", True)
    assert phases(report) == {"construction", "inference"} and not remedies(report) & OF_TRAINING


def test_a_script_that_may_train_later_is_not_stopped(fathom, tmp_path):
    script = tmp_path / "later.py"
    script.write_text("""
import torch
model = torch.nn.Linear(64, 64).cuda()
with torch.no_grad():
    for _ in range(50):
        model(torch.randn(8, 64, device="cuda"))
for number in range(50):
    print("ROUND", number)
    model(torch.randn(8, 64, device="cuda")).sum().backward()
    for parameter in model.parameters():
        parameter.data.sub_(parameter.grad)
""")
    report, done = fathom(PYTHON, script, flags=("--gpu", "rtx3090"))
    assert (rounds(done), report["stopped"]) == (STEPS + 1, True), done.stdout
    assert {"inference", "forward", "backward", "optimizer"} <= phases(report)


def test_answers_that_stay_on_the_card_are_not_said_to_fit(fathom, tmp_path):
    script = tmp_path / "answers.py"
    script.write_text("""
import torch
model = torch.nn.Linear(1024, 1024).cuda()
answers = []
with torch.no_grad():
    for number in range(4000):
        answers.append(model(torch.randn(256, 1024, device="cuda")))
""")
    report, done = fathom(PYTHON, script, flags=("--gpu", "rtx3090", "--memory", "2GiB"))
    assert report["judgement"] == "depends" and "every step keeps 1.0 MiB more" in report["headline"], done.stdout


def test_inference_has_no_phases_of_a_training_to_miss(fathom):
    report, done = fathom.script("inference", "evaluation", env={"FATHOM_WHOLE_RUN": "on"})
    assert report["whole"]["unseen"] == [] and "after training" not in done.stdout, done.stdout
    assert "not seen: what the script does after these calls" in " ".join(done.stdout.split()), done.stdout
