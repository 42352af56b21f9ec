"""Training as accelerate's guide has it; how many cards there are is the launcher's business."""

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    accelerator = Accelerator()
    model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 10))
    optimizer = torch.optim.AdamW(model.parameters())
    loader = DataLoader(TensorDataset(torch.randn(2048, 1024), torch.randint(10, (2048,))), batch_size=16)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for rows, labels in loader:
        loss = nn.functional.cross_entropy(model(rows), labels)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    accelerator.print("processes", accelerator.num_processes)


if __name__ == "__main__":
    main()
