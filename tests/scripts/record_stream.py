"""Batches that a side stream works on and the main stream frees; the host waits for the card in another way each step.

When it waits decides how long memory may be in use that the script has given back.
"""

import torch
from torch import nn

WIDTH, BATCH = 1024, 4096
WAITS = ("item", "nothing", "nothing", "side", "nothing", "device")


def wait(how, loss, side):
    if how == "item":
        loss.item()
    elif how == "side":
        side.synchronize()
    elif how == "device":
        torch.cuda.synchronize()


def main():
    side = torch.cuda.Stream()
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, WIDTH)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for how in WAITS:
        for _ in range(2):
            batch = torch.empty(BATCH, WIDTH, device="cuda")
            with torch.cuda.stream(side):
                batch.normal_()
            batch.record_stream(side)
            torch.cuda.current_stream().wait_stream(side)
            loss = model(batch).square().mean()
            loss.backward()
            late = torch.empty(3 * BATCH, WIDTH, device="cuda")
            with torch.cuda.stream(side):
                late.zero_()
            late.record_stream(side)
            del batch, late
        wait(how, loss, side)
        optimizer.step()
        optimizer.zero_grad()
    stats = torch.cuda.memory_stats()
    print("PEAKS", *(stats[f"{kind}_bytes.all.peak"] for kind in ("allocated", "reserved", "active")))


if __name__ == "__main__":
    main()
