"""Trains with data from sixteen processes: `python loads.py WORKERS [PAUSE]`."""

import os
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Numbers(Dataset):
    def __len__(self):
        return 4096

    def __getitem__(self, index):
        time.sleep(0.001)
        return torch.full((64,), float(index))


if __name__ == "__main__":
    workers = int(sys.argv[1])
    model = torch.nn.Linear(64, 64).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    for batch in DataLoader(Numbers(), batch_size=16, num_workers=workers, persistent_workers=True):
        model(batch.cuda()).sum().backward()
        optimizer.step()
        print("step", os.getpid(), flush=True)
        time.sleep(float((sys.argv[2:] or ["0"])[0]))
