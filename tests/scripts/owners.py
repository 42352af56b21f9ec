"""One of everything that can hold memory, with sizes that are easy to add up.

Adam over trainable, used parameters only; a frozen layer; one that is never used; an average of the weights; fp16
autocast; two backward passes per step. Prints the sizes it knows, one JSON object.
"""

import argparse
import copy
import json

import torch
from torch import nn

WIDTH = 1024


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = nn.Linear(WIDTH, WIDTH).requires_grad_(False)
        self.body = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))
        self.idle = nn.Linear(WIDTH, 64)
        self.register_buffer("scale", torch.ones(WIDTH, WIDTH))

    def forward(self, x):
        return self.body(self.frozen(x)) @ self.scale


def elements(parameters):
    return sum(parameter.numel() for parameter in parameters)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--accumulate", type=int, default=2)
    parser.add_argument("--average", choices=["module", "list", "none"], default="module")
    parser.add_argument("--autocast", action="store_true")
    options = parser.parse_args()
    model = Net().cuda()
    average = None
    if options.average == "module":
        average = copy.deepcopy(model).requires_grad_(False)
    elif options.average == "list":
        average = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad])
    for _ in range(3):
        for _ in range(options.accumulate):
            x = torch.randn(256, WIDTH, device="cuda")
            with torch.autocast("cuda", dtype=torch.float16, enabled=options.autocast):
                loss = model(x).float().square().mean()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    used = elements(model.body.parameters())
    everything = elements(model.parameters())
    held = average if isinstance(average, list) else [] if average is None else list(average.parameters())
    copies = elements(held) + (WIDTH * WIDTH if options.average == "module" else 0)
    sizes = {"weights": 4 * everything, "gradients": 4 * used, "optimizer": 8 * used, "model_copies": 4 * copies}
    sizes["parameters"] = [everything, elements(p for p in model.parameters() if p.requires_grad), elements(model.idle.parameters())]
    print("SIZES", json.dumps(sizes))


if __name__ == "__main__":
    main()
