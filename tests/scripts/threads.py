"""Four models train at once, each in a thread of its own: all are recorded into one file.

When all have trained, and all that they hold is there, one of them allocates what makes this the peak.
"""

import threading

import torch

STEPS, WIDTHS = 30, (128, 192, 256, 320)
trained = threading.Barrier(len(WIDTHS))


def work(width):
    try:
        train(width)
    except BaseException:
        trained.abort()  # nobody is to wait for this one
        raise


def train(width):
    model = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(6))).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(STEPS):
        model(torch.randn(64, width, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    trained.wait()
    if width == max(WIDTHS):
        torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
    trained.wait()


torch.cuda.init()
threads = [threading.Thread(target=work, args=(width,)) for width in WIDTHS]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("trained", len(threads))
