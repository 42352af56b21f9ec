"""Detectors of torchvision, small: `detectors.py DEVICE`. Prints every size that depends on values."""

import sys

import torch
from torchvision.models import detection

DEVICE = sys.argv[1]
SIZES = {"min_size": 96, "max_size": 128}
PLAIN = {"weights": None, "weights_backbone": None, "num_classes": 5, **SIZES}


def example(number, height, width, count):
    generator = torch.Generator().manual_seed(number)
    corner = torch.rand(count, 2, generator=generator) * torch.tensor([width / 2, height / 2])
    size = 20 + torch.rand(count, 2, generator=generator) * torch.tensor([width / 2 - 20, height / 2 - 20])
    labels = torch.randint(1, 5, (count,), generator=generator)
    masks = (torch.rand(count, height, width, generator=generator) > 0.5).to(torch.uint8)
    target = {"boxes": torch.cat([corner, corner + size], dim=1), "labels": labels, "masks": masks}
    return torch.rand(3, height, width, generator=generator), target


def says(name):
    def hook(_, __, result):
        tensors = result[0] if isinstance(result, tuple) else result
        print("SIZES", name, [list(tensor.shape) for tensor in (tensors if isinstance(tensors, list) else [tensors])])

    return hook


def train(name):
    torch.manual_seed(0)
    model = getattr(detection, name)(**PLAIN).to(DEVICE)
    # Weights stay what they are: those of later steps count as those of the first on the phantom.
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    if hasattr(model, "rpn"):
        model.rpn.register_forward_hook(says(f"{name} proposals"))
        model.roi_heads.box_roi_pool.register_forward_hook(says(f"{name} boxes"))
    model.train()
    for step in range(3):
        examples = [example(2 * step, 120, 160, 3), example(2 * step + 1, 150, 130, 2)]
        images = [image.to(DEVICE) for image, _ in examples]
        targets = [{key: tensor.to(DEVICE) for key, tensor in target.items()} for _, target in examples]
        losses = model(images, targets)
        optimizer.zero_grad()
        sum(losses.values()).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for found in model(images):
            print("SIZES", name, "found", {key: list(tensor.shape) for key, tensor in sorted(found.items())})


for name in sys.argv[2:]:
    train(name)
