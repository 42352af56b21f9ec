"""An optimizer's steps before the compiler is wanted, and compiled steps after."""

import sys

import torch

layers = torch.nn.Linear(64, 64), torch.nn.GELU(), torch.nn.Linear(64, 64), torch.nn.Unflatten(-1, (8, 8))
model = torch.nn.Sequential(*layers).cuda()
optimizer = torch.optim.AdamW(model.parameters())


def steps(function):
    for _ in range(2):
        function(torch.randn(4, 64, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


steps(model)
print("loaded before:", "torch._dynamo.eval_frame" in sys.modules)
steps(torch.compile(model, backend="eager", fullgraph=True))
hidden = torch.optim.Optimizer.add_param_group.__wrapped__
torch.optim.SGD(model.parameters(), lr=0.1)
print("loaded after:", "torch._dynamo.eval_frame" in sys.modules)
print("graphs:", torch._dynamo.utils.counters["stats"]["unique_graphs"])
print("hidden:", getattr(hidden, "__dynamo_disable") is not hidden)
