"""Four models train at once, each in a thread of its own: all are recorded into one file."""

import threading

import torch

STEPS = 30


def train(width):
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(6))).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(STEPS):
        model(torch.randn(64, width, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


torch.cuda.init()
threads = [threading.Thread(target=train, args=(width,)) for width in (128, 192, 256, 320)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("trained", len(threads))
