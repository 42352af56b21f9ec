"""torchvision, SGD with momentum, 32 images of 224 × 224"""

import torch
import torchvision
from training import classify, run


def build(device):
    with torch.device(device):
        model = torchvision.models.resnet50()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    return classify(model, optimizer, 32, device)


if __name__ == "__main__":
    run(build)
