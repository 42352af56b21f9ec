"""A two-layer LSTM language model, truncated back-propagation through time with the state carried over."""

import torch
from torch import nn

VOCABULARY = 10000
WIDTH = 650
BATCH = 20
TOKENS = 35
STEPS = 50


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        self.lstm = nn.LSTM(WIDTH, WIDTH, num_layers=2, dropout=0.5)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids, state):
        hidden, state = self.lstm(self.embedding(ids), state)
        return self.head(hidden), state


device = "cuda"
model = LanguageModel().to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=20.0)
corpus = torch.randint(VOCABULARY, (STEPS * TOKENS + 1, BATCH))

state = None
for step in range(STEPS):
    ids = corpus[step * TOKENS : (step + 1) * TOKENS].to(device)
    following = corpus[step * TOKENS + 1 : (step + 1) * TOKENS + 1].to(device)
    logits, state = model(ids, state)
    state = tuple(tensor.detach() for tensor in state)
    loss = nn.functional.cross_entropy(logits.view(-1, VOCABULARY), following.reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
