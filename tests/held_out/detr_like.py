"""A detector with a convolutional backbone, a transformer, queries and a loss over matched boxes."""

import torch
import torchvision
from torch import nn
from torch.nn import functional as F


class MLP(nn.Module):
    def __init__(self, width, hidden, outputs):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(width, hidden), nn.Linear(hidden, hidden), nn.Linear(hidden, outputs)])

    def forward(self, x):
        for index, layer in enumerate(self.layers):
            x = F.relu(layer(x)) if index < 2 else layer(x)
        return x


class Detector(nn.Module):
    def __init__(self, classes=91, width=256, queries=100):
        super().__init__()
        body = torchvision.models.resnet18(weights=None)
        self.backbone = nn.Sequential(*list(body.children())[:-2])
        self.project = nn.Conv2d(512, width, 1)
        self.transformer = nn.Transformer(width, 8, 3, 3, 1024, dropout=0.1, batch_first=True)
        self.queries = nn.Embedding(queries, width)
        self.rows, self.columns = nn.Parameter(torch.rand(50, width // 2)), nn.Parameter(torch.rand(50, width // 2))
        self.classes, self.boxes = nn.Linear(width, classes + 1), MLP(width, width, 4)

    def forward(self, images):
        features = self.project(self.backbone(images))
        height, width = features.shape[-2:]
        places = torch.cat(
            [self.columns[:width].unsqueeze(0).repeat(height, 1, 1), self.rows[:height].unsqueeze(1).repeat(1, width, 1)], -1
        ).flatten(0, 1)
        source = places + features.flatten(2).transpose(1, 2)
        target = self.queries.weight.unsqueeze(0).repeat(len(images), 1, 1)
        decoded = self.transformer(source, target)
        return self.classes(decoded), self.boxes(decoded).sigmoid()


class Criterion(nn.Module):
    def __init__(self, classes):
        super().__init__()
        weight = torch.ones(classes + 1)
        weight[-1] = 0.1
        self.register_buffer("weight", weight)

    def forward(self, logits, boxes, labels, targets):
        goal = torch.full(logits.shape[:2], logits.shape[-1] - 1, device=logits.device)
        goal[:, : labels.shape[1]] = labels
        by_class = F.cross_entropy(logits.transpose(1, 2), goal, self.weight)
        return by_class + 5 * F.l1_loss(boxes[:, : labels.shape[1]], targets)


model, criterion = Detector().to("cuda"), Criterion(91).to("cuda")
groups = [
    {"params": [p for n, p in model.named_parameters() if "backbone" not in n]},
    {"params": [p for n, p in model.named_parameters() if "backbone" in n], "lr": 1e-5},
]
optimizer = torch.optim.AdamW(groups, lr=1e-4, weight_decay=1e-4)
model.train()
for _ in range(3):
    images = torch.rand(4, 3, 320, 320).to("cuda")
    labels, targets = torch.randint(0, 91, (4, 7)).to("cuda"), torch.rand(4, 7, 4).to("cuda")
    losses = criterion(*model(images), labels, targets)
    optimizer.zero_grad()
    losses.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
    optimizer.step()
