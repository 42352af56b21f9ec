"""Trainings without an optimizer: `by_hand.py WAY`. Each loop has ten rounds, and says which it is in."""

import sys

import torch
from torch import nn


def language_model(update):
    """Embedding, recurrent layer and decoder; gradients are clipped, and the script changes the weights itself."""
    model = nn.ModuleDict({"embed": nn.Embedding(2000, 128), "rnn": nn.LSTM(128, 128, 2), "decode": nn.Linear(128, 2000)}).cuda()
    for number in range(10):
        print("ROUND", number)
        data = torch.randint(0, 2000, (36, 8)).cuda()
        model.zero_grad()
        output = model["decode"](model["rnn"](model["embed"](data[:-1]))[0])
        nn.functional.cross_entropy(output.view(-1, 2000), data[1:].view(-1)).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        update(model.parameters())
        if number % 2:
            model.eval()
            with torch.no_grad():
                model["decode"](model["rnn"](model["embed"](data))[0])
            model.train()


def through_data(parameters):
    for parameter in parameters:
        parameter.data.add_(parameter.grad, alpha=-20)


def in_place(parameters):
    with torch.no_grad():
        for parameter in parameters:
            parameter -= 20 * parameter.grad


def in_lists(parameters):
    parameters = list(parameters)
    with torch.no_grad():
        torch._foreach_add_(parameters, [parameter.grad for parameter in parameters], alpha=-20)


def gan():
    """Two models with an update each."""
    generator = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1024)).cuda()
    critic = nn.Sequential(nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 1)).cuda()
    for number in range(10):
        print("ROUND", number)
        real, made = torch.randn(128, 1024, device="cuda"), generator(torch.randn(128, 64, device="cuda"))
        critic.zero_grad()
        critic(real).mean().backward()
        critic(made.detach()).mean().neg().backward()
        through_data(critic.parameters())
        generator.zero_grad()
        critic(made).mean().backward()
        through_data(generator.parameters())


def accumulated():
    """Four batches for each update."""
    layer = nn.Linear(512, 512).cuda()
    for number in range(40):
        print("ROUND", number)
        layer(torch.randn(64, 512, device="cuda")).square().mean().backward()
        if number % 4 == 3:
            through_data(layer.parameters())
            layer.zero_grad()


def without_modules():
    """No module, and new weights in the place of the old."""
    weights = [torch.randn(512, 512, device="cuda", requires_grad=True) for _ in range(2)]
    for number in range(10):
        print("ROUND", number)
        loss = (torch.randn(64, 512, device="cuda") @ weights[0]).relu().matmul(weights[1]).square().sum()
        gradients = torch.autograd.grad(loss, weights)
        weights = [(w - 1e-6 * g).detach().requires_grad_() for w, g in zip(weights, gradients)]


WAYS = {
    "data": lambda: language_model(through_data),
    "in_place": lambda: language_model(in_place),
    "lists": lambda: language_model(in_lists),
    "gan": gan,
    "accumulated": accumulated,
    "without_modules": without_modules,
}

if __name__ == "__main__":
    WAYS[sys.argv[1]]()
