"""torchvision, AdamW, 16 images of 224 × 224"""

import torch
import torchvision
from training import classify, run


def build(device):
    with torch.device(device):
        model = torchvision.models.vit_b_16()
    return classify(model, torch.optim.AdamW(model.parameters(), lr=1e-3), 16, device)


if __name__ == "__main__":
    run(build)
