"""torchvision, ResNet-50 FPN, SGD with momentum, 2 images of 640 × 640, anchors matched by the loader"""

import torch
from torch.nn.functional import smooth_l1_loss
from torchvision.models.detection import retinanet_resnet50_fpn
from torchvision.ops import sigmoid_focal_loss
from training import Training, run

IMAGES, SIZE, CLASSES = 2, 640, 91
# Nine at each place of five maps.
ANCHORS = 9 * sum((SIZE // stride) ** 2 for stride in (8, 16, 32, 64, 128))


class Dense(torch.nn.Module):
    """Backbone and heads alone. Nothing here depends on values, as it does where boxes are matched on the card."""

    def __init__(self):
        super().__init__()
        whole = retinanet_resnet50_fpn(weights=None, weights_backbone=None)
        self.backbone, self.head = whole.backbone, whole.head

    def forward(self, images):
        return self.head(list(self.backbone(images).values()))


def build(device):
    with torch.device(device):
        model = Dense()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.9)
    images = torch.rand(IMAGES, 3, SIZE, SIZE, device=device)
    labels = torch.zeros(IMAGES, ANCHORS, CLASSES, device=device)
    boxes = torch.zeros(IMAGES, ANCHORS, 4, device=device)

    def loss(heads):
        classes = sigmoid_focal_loss(heads["cls_logits"], labels, reduction="mean")
        return classes + smooth_l1_loss(heads["bbox_regression"], boxes)

    return Training(model.train(), optimizer, (images,), loss)


if __name__ == "__main__":
    run(build)
