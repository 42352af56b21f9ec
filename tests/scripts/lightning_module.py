"""A small convolutional network in a LightningModule, fed by two DataLoader workers."""

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCH = 64


class RandomImages(Dataset):
    def __len__(self):
        return 50 * BATCH

    def __getitem__(self, index):
        return torch.randn(3, 32, 32), index % 10


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(64, 128, 3, padding=1), nn.BatchNorm2d(128), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(128, 10),
        )  # fmt: skip

    def training_step(self, batch, index):
        images, labels = batch
        loss = nn.functional.cross_entropy(self.layers(images), labels)
        print(f"step {index} loss {loss.item():.4f}")
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


if __name__ == "__main__":
    trainer = L.Trainer(
        accelerator="gpu",
        devices=1,
        max_steps=50,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
    )
    trainer.fit(Classifier(), DataLoader(RandomImages(), batch_size=BATCH, num_workers=2))
