"""Faster R-CNN with a ResNet-50 FPN backbone on two images with boxes."""

import torch
from torchvision.models.detection import fasterrcnn_resnet50_fpn

STEPS = 50

device = "cuda"
# Half the usual size: proposals are computed on the CPU, and tests should not take minutes.
model = fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None, num_classes=91, min_size=400, max_size=667).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9, weight_decay=5e-4)


def example(height, width, count):
    corner = torch.rand(count, 2) * torch.tensor([width / 2, height / 2])
    size = 20 + torch.rand(count, 2) * torch.tensor([width / 2 - 20, height / 2 - 20])
    target = {"boxes": torch.cat([corner, corner + size], dim=1), "labels": torch.randint(1, 91, (count,))}
    return torch.rand(3, height, width), target


model.train()
for step in range(STEPS):
    examples = [example(480, 640, 5), example(600, 800, 3)]
    images = [image.to(device) for image, _ in examples]
    targets = [{name: tensor.to(device) for name, tensor in target.items()} for _, target in examples]
    losses = model(images, targets)
    loss = sum(losses.values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
