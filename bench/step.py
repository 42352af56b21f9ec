"""A training step of BERT-large (batch 4 x 512, AdamW): the phantom against the meta device, in one run.

    make bench            needs the test requirements (transformers)

Started by itself it launches the cases and prints the table; with an argument it is one case.
"""

import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
FATHOM = os.path.join(HERE, "..", "target", "release", "fathom")
STEPS = 10


def measure(device):
    import torch
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
    with torch.device(device):
        model = BertForMaskedLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    ids = torch.ones((4, 512), dtype=torch.long, device=device)

    def step():
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    seconds = []
    for _ in range(STEPS + 2):
        began = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - began)
    print("RESULT", json.dumps(statistics.median(seconds[2:])))


def case(device, values, record="off"):
    flags = ["--quiet", "--steps", "0", "--values", values, "--record", record]
    command = [FATHOM, "run", *flags, "--", sys.executable, __file__, device]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return next(json.loads(line[7:]) for line in output.splitlines() if line.startswith("RESULT "))


def start_up(with_fathom):
    """Seconds to run a script that only imports torch; the loader needs the phantom's stubs either way."""
    script = os.path.join(HERE, "..", "tests", "scripts", "import_only.py")
    command = [FATHOM, "run", "--quiet", "--", sys.executable, script]
    if not with_fathom:
        preload = subprocess.run(
            [FATHOM, "run", "--", "sh", "-c", "echo PRELOAD=$LD_PRELOAD"], capture_output=True, text=True
        ).stdout
        line = next(line for line in preload.splitlines() if line.startswith("PRELOAD="))
        command = ["env", "LD_PRELOAD=" + line[8:], sys.executable, script]
    seconds = []
    for _ in range(4):
        began = time.perf_counter()
        subprocess.run(command, capture_output=True, check=True)
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def main():
    bare, values, meta = case("cuda", "off"), case("cuda", "on"), case("meta", "off")
    recorded = case("cuda", "on", "on")
    print("| BERT-large step | seconds | against meta |\n| --- | ---: | ---: |")
    print(f"| phantom | {bare:.3f} | {meta / bare:.0f} x faster |")
    print(f"| phantom with true small values | {values:.3f} | {meta / values:.0f} x faster |")
    print(f"| the same, recorded | {recorded:.3f} | {meta / recorded:.0f} x faster |")
    print(f"| meta device | {meta:.3f} | 1 |")
    print(f"\nrecording: {recorded / values:.2f} x the step without it")
    plain, under = start_up(False), start_up(True)
    print(f"\nimport torch: {plain:.2f} s without the command, {under:.2f} s under it (+{under - plain:.2f} s)")


if __name__ == "__main__":
    measure(sys.argv[1]) if len(sys.argv) > 1 else main()
