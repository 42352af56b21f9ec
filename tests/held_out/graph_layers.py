"""Messages along the edges of a graph, gathered and summed by index; full batch, Adagrad, an evaluation."""

import torch
from torch import nn
from torch.nn import functional as F


class Graph(nn.Module):
    def __init__(self, inputs, outputs, heads=4):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(inputs, heads * outputs, bias=False)
        self.score = nn.Parameter(torch.randn(heads, 2 * outputs))
        self.bias = nn.Parameter(torch.zeros(heads * outputs))

    def forward(self, x, edges):
        h = self.project(x).view(len(x), self.heads, -1)
        pairs = torch.cat([h[edges[0]], h[edges[1]]], -1)
        scores = F.leaky_relu((pairs * self.score).sum(-1), 0.2).exp()
        total = torch.zeros(len(x), self.heads, device=x.device).index_add(0, edges[1], scores)
        share = F.dropout(scores / total[edges[1]], 0.1, self.training)
        out = torch.zeros_like(h).index_add(0, edges[1], h[edges[0]] * share.unsqueeze(-1))
        return out.flatten(1) + self.bias


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two, self.out = Graph(256, 64), Graph(256, 64), nn.Linear(256, 40)

    def forward(self, x, edges):
        x = F.elu(self.one(x, edges))
        return self.out(F.elu(self.two(F.dropout(x, 0.5, self.training), edges)))


device = "cuda"
nodes, edges = torch.randn(20000, 256).to(device), torch.randint(0, 20000, (2, 100000)).to(device)
labels = torch.randint(0, 40, (20000,)).to(device)
network = Network().to(device)
optimizer = torch.optim.Adagrad(network.parameters(), lr=0.01)
for _ in range(3):
    network.train()
    optimizer.zero_grad()
    F.cross_entropy(network(nodes, edges), labels).backward()
    optimizer.step()
    network.eval()
    with torch.no_grad():
        network(nodes, edges).argmax(-1)
