"""Scripts whose memory snapshots were published, written anew; `bench/data/snapshots/SOURCES.md` names them.

    python programs.py linear|attention|transformer EVENTS.txt

Writes what PyTorch's allocator did: one line for each event, its kind and its bytes. What a name holds decides when a tensor
dies, so temporaries are bound and unbound where the originals do.
"""

import math
import sys

import torch
from torch import nn


def linear():
    """A linear layer, called three times; its results live until the next."""
    layer = nn.Linear(10_000, 50_000, device="cuda")
    for _ in range(3):
        inputs = torch.randn(5_000, 10_000, device="cuda")
        outputs = layer(inputs)
    return inputs, outputs


def softmax(scores):
    """As the attention script has it: one exponential."""
    highest = scores.max(dim=-1, keepdim=True).values
    raised = torch.exp(scores - highest)
    total = torch.sum(raised, dim=-1, keepdim=True)
    return raised / total


def spelled_out(query, key, value):
    scores = torch.einsum("...qd,...kd->...qk", query, key)
    scores = scores / query.shape[-1] ** 0.5
    weights = softmax(scores)
    return torch.einsum("...qk,...kd->...qd", weights, value)


def attention():
    """Attention without a kernel of its own, forward and backward."""
    query, key, value = (torch.randn(8, 4096, 16, device="cuda", requires_grad=True) for _ in range(3))
    result = spelled_out(query, key, value)
    loss = result.sum()
    loss.backward()
    return query, key, value, result, loss


class Dense(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs, device="cuda"))
        nn.init.trunc_normal_(self.weight)

    def forward(self, x):
        return torch.einsum("...i,oi->...o", x, self.weight)


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width, device="cuda"))

    def forward(self, x):
        scale = torch.sqrt(torch.mean(x**2, dim=-1, keepdim=True) + 1e-5)
        return x / scale * self.weight


def rotate(x, sine, cosine):
    """Rotary positions; the tables are on the host and go to the card at each call."""
    length = x.shape[-2]
    sine, cosine = sine[:length].to("cuda")[..., None], cosine[:length].to("cuda")[..., None]
    pairs = x.unflatten(-1, (-1, 2))
    first = cosine * pairs[..., :1] - sine * pairs[..., 1:]
    second = sine * pairs[..., :1] + cosine * pairs[..., 1:]
    return torch.cat([first, second], dim=-1).flatten(-2)


def masked_attention(query, key, value, mask):
    mask = mask.to("cuda")
    products = torch.einsum("...qd,...kd->...qk", query, key)
    scores = products / torch.sqrt(torch.tensor(query.shape[-1], device="cuda"))
    scores.masked_fill_(~mask.bool(), -math.inf)
    weights = twice_exponential(scores)
    result = torch.einsum("...qk,...kd->...qd", weights, value)
    return result


def twice_exponential(scores):
    highest, _ = torch.max(scores, dim=-1, keepdim=True)
    return torch.exp(scores - highest) / torch.sum(torch.exp(scores - highest), dim=-1, keepdim=True)


class Block(nn.Module):
    def __init__(self, width, heads, inner, longest):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_dense = Norm(width), Norm(width)
        angles = torch.outer(torch.arange(longest), 10_000.0 ** -torch.arange(0, 1, 2 * heads / width))
        self.sine, self.cosine = angles.sin(), angles.cos()
        self.query, self.key, self.value, self.output = (Dense(width, width) for _ in range(4))
        self.gate, self.down, self.up = Dense(width, inner), Dense(inner, width), Dense(width, inner)

    def attend(self, x):
        query, key, value = self.query(x), self.key(x), self.value(x)
        query, key, value = (each.unflatten(-1, (self.heads, -1)).transpose(-3, -2) for each in (query, key, value))
        query = rotate(query, self.sine, self.cosine)
        key = rotate(key, self.sine, self.cosine)
        mask = torch.tril(torch.ones(x.shape[-2], x.shape[-2]))
        result = masked_attention(query, key, value, mask)
        result = result.transpose(-3, -2).flatten(-2)
        return self.output(result)

    def feed(self, x):
        gate = self.gate(x)
        gated = gate * torch.sigmoid(gate)
        up = self.up(x)
        product = gated * up
        return self.down(product)

    def forward(self, x):
        normed = self.before_attention(x)
        attended = self.attend(normed)
        middle = attended + x
        normed_again = self.before_dense(middle)
        fed = self.feed(normed_again)
        return fed + middle


class Model(nn.Module):
    def __init__(self, words=10_000, longest=256, width=512, layers=4, heads=16, inner=1344):
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(words, width, device="cuda"))
        nn.init.trunc_normal_(self.embedding)
        self.blocks = nn.ModuleList([Block(width, heads, inner, longest) for _ in range(layers)])
        self.norm = Norm(width)
        self.head = Dense(width, words)

    def forward(self, x):
        x = self.embedding[x]
        for block in self.blocks:
            x = block(x)
        x = self.norm(x)
        logits = self.head(x)
        return logits


class Adam(torch.optim.Optimizer):
    """Out of place, as the original: each step makes new moments and new weights."""

    def __init__(self, parameters):
        super().__init__(parameters, {})
        for parameter in self.param_groups[0]["params"]:
            moments = {"first": torch.zeros_like(parameter.data), "second": torch.zeros_like(parameter.data)}
            self.state[parameter] = moments

    def step(self):
        for parameter in self.param_groups[0]["params"]:
            gradient = parameter.grad.data
            first = self.state[parameter]["first"]
            new_first = 0.9 * first + 0.1 * gradient
            self.state[parameter]["first"] = new_first
            second = self.state[parameter]["second"]
            new_second = 0.999 * second + 0.001 * gradient**2
            self.state[parameter]["second"] = new_second
            parameter.data = parameter.data - 1e-3 * (new_first / (torch.sqrt(new_second) + 1e-8))
            parameter.data = parameter.data - 0.0 * parameter.data


def cross_entropy(logits, labels):
    highest, _ = torch.max(logits, dim=-1, keepdim=True)
    shifted = logits - highest - torch.log(torch.sum(torch.exp(logits - highest), dim=-1, keepdim=True))
    chosen = torch.zeros_like(shifted)
    chosen.scatter_(-1, labels.unsqueeze(-1), 1)
    return -torch.sum(chosen * shifted) / logits.shape[0]


def transformer():
    """A small transformer, three steps of training on the last word of a line of 100."""
    model = Model()
    optimizer = Adam(model.parameters())
    lines = torch.randint(0, 10_000, (10, 100)).to("cuda")
    labels = torch.randint(0, 10_000, (10,)).to("cuda")
    for _ in range(3):
        optimizer.zero_grad()
        logits = model(lines)
        last = logits[:, -1, :]
        loss = cross_entropy(last, labels)
        loss.backward()
        optimizer.step()
    return model, optimizer, lines, labels, logits, last, loss


if __name__ == "__main__":
    torch.cuda.memory._record_memory_history(max_entries=1_000_000)
    alive = {"linear": linear, "attention": attention, "transformer": transformer}[sys.argv[1]]()
    (events,) = torch.cuda.memory._snapshot()["device_traces"]
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.writelines(f"{event['action']} {event['size']}\n" for event in events)
