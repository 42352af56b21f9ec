"""two layers of width 650, SGD, 20 sequences of 35 tokens"""

import torch
from torch import nn
from training import Training, run


class Recurrent(nn.Module):
    """A language model."""

    def __init__(self, words=10_000, width=650):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, width, num_layers=2, dropout=0.0)
        self.head = nn.Linear(width, words)

    def forward(self, ids):
        return self.head(self.lstm(self.embedding(ids))[0])


def build(device):
    with torch.device(device):
        model = Recurrent()
    ids = torch.ones((35, 20), dtype=torch.long, device=device)

    def loss(scores):
        return nn.functional.cross_entropy(scores.flatten(0, 1), ids.flatten())

    return Training(model.train(), torch.optim.SGD(model.parameters(), lr=1.0), (ids,), loss)


if __name__ == "__main__":
    run(build)
