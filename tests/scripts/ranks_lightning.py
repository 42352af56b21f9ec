"""A LightningModule on several cards: ranks_lightning.py DEVICES NODES STRATEGY"""

import sys

import lightning
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 10))

    def training_step(self, batch, _):
        rows, labels = batch
        return nn.functional.cross_entropy(self.layers(rows), labels)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


if __name__ == "__main__":
    devices, nodes, strategy = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    data = TensorDataset(torch.randn(2048, 1024), torch.randint(10, (2048,)))
    trainer = lightning.Trainer(
        max_steps=5, accelerator="gpu", devices=devices, num_nodes=nodes, strategy=strategy, logger=False,
        enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False,
    )  # fmt: skip
    trainer.fit(Model(), DataLoader(data, batch_size=16))
