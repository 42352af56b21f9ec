"""The detection head: six tasks with six branches each, their targets and their losses."""

import torch
from pillars import conv_bn_relu
from torch import nn

BOX = {"reg": 2, "height": 1, "dim": 3, "rot": 2, "vel": 2}


class DetectionHead(nn.Module):
    """One shared convolution, then for each task a heat map and five maps of box parameters: 36 branches.

    Each branch keeps two maps of 64 channels at full size for backward; together they are the largest part.
    """

    def __init__(self, settings):
        super().__init__()
        width = settings.shared_channels
        self.shared = conv_bn_relu(settings.in_channels, width)
        self.tasks = nn.ModuleList()
        for task in settings.tasks:
            maps = {"heatmap": task["num_class"], **vars(settings.common_heads)}
            self.tasks.append(nn.ModuleDict({name: self.branch(width, channels) for name, channels in maps.items()}))
            nn.init.constant_(self.tasks[-1]["heatmap"][-1].bias, -2.19)  # a tenth of the cells, as focal loss likes it

    @staticmethod
    def branch(width, channels):
        return nn.Sequential(*conv_bn_relu(width, 64), nn.Conv2d(64, channels, 1))

    def forward(self, x):
        x = self.shared(x)
        return [{name: branch(x) for name, branch in task.items()} for task in self.tasks]


class Targets:
    """Heat maps with a Gaussian at each object, and the box parameters with the cell they belong to."""

    def __init__(self, settings, x_bound, y_bound):
        self.x_bound, self.y_bound = x_bound, y_bound
        self.classes = [task["num_class"] for task in settings.tasks]
        self.task_of_class = [task for task, number in enumerate(self.classes) for _ in range(number)]
        self.first_class = [sum(self.classes[:task]) for task in range(len(self.classes))]
        self.min_radius = settings.min_radius

    def __call__(self, objects, rows, columns, device):
        """`objects`: for each sample a list of `scenes.Box`; a list of targets, one for each task."""
        # The map's cells may be finer than the bounds say: the LiDAR decides.
        step_x = (self.x_bound[1] - self.x_bound[0]) / columns
        step_y = (self.y_bound[1] - self.y_bound[0]) / rows
        found = [
            {"heatmap": torch.zeros(len(objects), number, rows, columns, device=device), "boxes": [[] for _ in objects]}
            for number in self.classes
        ]
        for sample, boxes in enumerate(objects):
            for box in boxes:
                column, row = int((box.x - self.x_bound[0]) / step_x), int((box.y - self.y_bound[0]) / step_y)
                if not (0 <= column < columns and 0 <= row < rows):
                    continue
                task = self.task_of_class[box.label]
                radius = max(self.min_radius, int(min(box.size[:2]) / step_x / 2))
                self.draw(found[task]["heatmap"][sample, box.label - self.first_class[task]], row, column, radius)
                corner = column * step_x + self.x_bound[0], row * step_y + self.y_bound[0]
                found[task]["boxes"][sample].append((row * columns + column, box.parameters(*corner)))
        for target in found:
            target["boxes"] = self.gathered(target["boxes"], device)
        return found

    @staticmethod
    def draw(heatmap, row, column, radius):
        """Raises the heat map to a Gaussian around an object."""
        rows, columns = heatmap.shape
        window = [slice(max(0, at - radius), min(end, at + radius + 1)) for at, end in ((row, rows), (column, columns))]
        y, x = (torch.arange(part.start, part.stop, device=heatmap.device) for part in window)
        squared = (y[:, None] - row) ** 2 + (x - column) ** 2
        gaussian = torch.exp(-squared / (2 * ((2 * radius + 1) / 6) ** 2))
        heatmap[tuple(window)] = torch.maximum(heatmap[tuple(window)], gaussian)

    @staticmethod
    def gathered(boxes, device):
        """Cell, parameters and presence of the objects of a task: (batch, most objects of a sample, …)."""
        most, nothing = max(1, *map(len, boxes)), (0, (0.0,) * sum(BOX.values()))
        padded = [sample + [nothing] * (most - len(sample)) for sample in boxes]
        cell = torch.tensor([[box[0] for box in sample] for sample in padded], device=device)
        parameters = torch.tensor([[box[1] for box in sample] for sample in padded], device=device)
        present = torch.tensor([[float(i < len(sample)) for i in range(most)] for sample in boxes], device=device)
        return cell, parameters, present


def focal_loss(logits, target):
    """The penalty-reduced focal loss of heat maps, divided by the number of objects."""
    probability = logits.sigmoid()
    is_object = target.eq(1).float()
    near = (1 - target).pow(4)
    objects = -torch.log(probability.clamp(min=1e-6)) * (1 - probability).pow(2) * is_object
    others = -torch.log((1 - probability).clamp(min=1e-6)) * probability.pow(2) * near * (1 - is_object)
    return (objects.sum() + others.sum()) / is_object.sum().clamp(min=1)


def detection_loss(predictions, targets, weights):
    """The weighted sum over tasks and branches."""
    losses = {"heatmap": 0.0, **dict.fromkeys(BOX, 0.0)}
    for prediction, target in zip(predictions, targets, strict=True):
        losses["heatmap"] += focal_loss(prediction["heatmap"], target["heatmap"])
        cell, parameters, present = target["boxes"]
        wanted = dict(zip(BOX, parameters.split(list(BOX.values()), dim=2), strict=True))
        for name, channels in BOX.items():
            at_objects = prediction[name].flatten(2).gather(2, cell[:, None].expand(-1, channels, -1)).transpose(1, 2)
            error = (at_objects.float() - wanted[name]).abs() * present[:, :, None]
            losses[name] += error.sum() / present.sum().clamp(min=1)
    return sum(losses[name] * weights[name] for name in losses) / len(predictions)
