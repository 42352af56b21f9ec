"""torchvision with a ResNet-50 FPN backbone, SGD with momentum, images of 480 × 640 and 600 × 800"""

import torch
from torchvision.models.detection import fasterrcnn_resnet50_fpn
from training import Training, run

BOXES = ([[40.0, 60.0, 260.0, 300.0], [300.0, 100.0, 600.0, 420.0]], [[100.0, 80.0, 700.0, 560.0]])


def build(device):
    # Shapes depend on values here: boxes are matched, chosen and suppressed.
    with torch.device(device):
        model = fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9)
    images = [torch.rand(3, height, width, device=device) for height, width in ((480, 640), (600, 800))]
    targets = [
        {"boxes": torch.tensor(boxes, device=device), "labels": torch.ones(len(boxes), dtype=torch.long, device=device)}
        for boxes in BOXES
    ]
    return Training(model.train(), optimizer, (images, targets), lambda losses: sum(losses.values()))


if __name__ == "__main__":
    run(build)
