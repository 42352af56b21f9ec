"""Two DataLoader workers, pinned host memory and copies that do not block."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCH = 128
STEPS = 50


class RandomRows(Dataset):
    def __len__(self):
        return STEPS * BATCH

    def __getitem__(self, index):
        return torch.randn(1024), index % 100


def main():
    device = "cuda"
    model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 100)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loader = DataLoader(RandomRows(), batch_size=BATCH, shuffle=True, num_workers=2, pin_memory=True)
    for step, (rows, labels) in enumerate(loader):
        assert rows.is_pinned()
        rows, labels = rows.to(device, non_blocking=True), labels.to(device, non_blocking=True)
        loss = nn.functional.cross_entropy(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
