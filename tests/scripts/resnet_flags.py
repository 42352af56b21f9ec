"""ResNet on random images; everything that a sweep may vary is a flag or a variable."""

import argparse
import os

import torch
import torchvision

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="resnet50")
parser.add_argument("--batch-size", type=int, default=int(os.environ.get("BATCH", 32)))
parser.add_argument("--image-size", type=int, default=224)
options = parser.parse_args()

model = getattr(torchvision.models, options.model)(weights=None).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(100):
    images = torch.randn(options.batch_size, 3, options.image_size, options.image_size, device="cuda")
    labels = torch.randint(1000, (options.batch_size,), device="cuda")
    output = model(images)
    loss = torch.nn.functional.cross_entropy(getattr(output, "logits", output), labels)  # GoogLeNet has heads beside
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
