"""What the scripts of this folder have in common: a `Training`, and how it is run.

Each script is an ordinary one, `python resnet50.py`, and a module whose `build(device)` gives the same training on any
device: so the phantom, the meta device, fake tensors and tools that only look at the model are all given the same.
Models are those that people train, of PyTorch, torchvision, timm, transformers, diffusers and peft, with random weights.
"""

import contextlib
import dataclasses
import os
from collections.abc import Callable

import torch

# The first step makes the optimizer's state, the second shows the peak with it.
STEPS = int(os.environ.get("STEPS", 2))


@dataclasses.dataclass
class Training:
    """A model with what it is trained on; `loss` makes a scalar of what the model returns."""

    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    batch: tuple | dict
    loss: Callable
    # Entered around the forward pass: autocast, or nothing.
    around: Callable = contextlib.nullcontext

    def forward(self):
        """What the model returns for the batch."""
        return self.model(**self.batch) if isinstance(self.batch, dict) else self.model(*self.batch)

    def step(self):
        """One step as every tutorial writes it."""
        with self.around():
            loss = self.loss(self.forward())
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()


def run(build, *sizes):
    """The script: trains on the card."""
    training = build("cuda", *sizes)
    for _ in range(STEPS):
        training.step()


def classify(model, optimizer, images, device):
    """Images of 224 x 224 in 1000 classes."""
    labels = torch.zeros(images, dtype=torch.long, device=device)
    batch = (torch.randn(images, 3, 224, 224, device=device),)
    return Training(model.train(), optimizer, batch, lambda output: torch.nn.functional.cross_entropy(output, labels))


def learn(model, sequences, tokens, device):
    """A model of transformers, which makes its loss itself; AdamW for whatever is trained."""
    ids = torch.ones((sequences, tokens), dtype=torch.long, device=device)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-4)
    return Training(model.train(), optimizer, {"input_ids": ids, "labels": ids}, lambda output: output.loss)
