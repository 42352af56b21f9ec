"""What runs beside the model that is trained: encoders, batches of other steps, results that a variable holds, graphs."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from blowups import Calls
from case import fires, randn, spares, train
from training import mlp


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(*(part for _ in range(3) for part in (nn.Conv2d(32, 32, 3, padding=1), nn.SiLU())))
        self.out = nn.Conv2d(32, 4, 8, stride=8)

    def forward(self, x):
        return self.out(self.net(x))


def with_encoder(encode):
    """Images become latents in every step, and a small network is trained on these."""
    encoder, model = Encoder().cuda(), nn.Sequential(nn.Conv2d(4, 64, 3), nn.SiLU(), nn.Conv2d(64, 4, 3)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(encode(encoder, randn(8, 32, 128, 128))).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()


@fires("untrained-graph", "no optimizer has", {"not-followed": "exact"})
@spares("encoder-in-step")
def an_encoder_that_autograd_follows():
    with_encoder(lambda encoder, x: encoder(x))


@fires("encoder-in-step", "which is not trained", {"encode-before": "exact", "encode-in-parts": "numerically equal"})
@spares("untrained-graph")
def an_encoder_inside_of_the_step():
    with_encoder(torch.no_grad()(lambda encoder, x: encoder(x)))


@spares("encoder-in-step", "untrained-graph")
def an_encoder_that_sees_a_few_at_a_time():
    with_encoder(torch.no_grad()(lambda encoder, x: torch.cat([encoder(part[:, :, ::2, ::2]) for part in x.split(1)])))


@fires("untrained-graph", "nobody uses them")
def a_body_that_nobody_freezes():
    """The optimizer has the head alone."""
    model = nn.ModuleDict({"body": mlp(layers=6), "head": nn.Linear(512, 10)}).cuda()
    optimizer = torch.optim.SGD(model["head"].parameters(), lr=0.1)
    for _ in range(3):
        model["head"](model["body"](randn(16384, 512))).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@spares("untrained-graph")
def a_loss_network_that_is_frozen():
    """A gradient flows through it to what is trained."""
    model, judge = mlp(layers=2).cuda(), mlp(layers=4).cuda().requires_grad_(False)
    train(model, randn(8192, 512), loss=lambda y: judge(y).sum())


@spares("untrained-graph")
def weights_that_are_kept_wide():
    """The optimizer has copies of the parameters, which no module knows."""
    model = mlp(layers=4).cuda().bfloat16()
    wide = [parameter.detach().float().requires_grad_() for parameter in model.parameters()]
    optimizer = torch.optim.SGD(wide, lr=0.1)
    for _ in range(3):
        model(randn(16384, 512, dtype=torch.bfloat16)).sum().backward()
        for copy, parameter in zip(wide, model.parameters()):
            copy.grad, parameter.grad = parameter.grad.float(), None
        optimizer.step()
        optimizer.zero_grad()


@spares("untrained-graph")
def an_optimizer_that_has_not_stepped_yet():
    """The critic's turn comes five times before the generator's."""
    maker, critic = mlp().cuda(), mlp().cuda()
    optimizers = [torch.optim.Adam(model.parameters()) for model in (maker, critic)]
    for _ in range(3):
        critic(maker(randn(8192, 512))).sum().backward()
        optimizers[1].step()
        optimizers[1].zero_grad()


# -- batches ------------------------------------------------------------------------------------------

BATCHED = 4096 * 512 * 4


def batches(is_waiting):
    """The next batch comes while the step runs, or when it is over."""
    model = mlp(layers=1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def bring():
        return torch.randn(4096, 512).cuda()  # HERE

    waiting = [bring()]
    for _ in range(4):
        x = waiting.pop()
        y = model(x)
        if is_waiting:
            waiting.append(bring())
        y.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        del x, y
        if not waiting:
            waiting.append(bring())


@fires("batches-at-once", "inputs of 1 more step", {"drop-batch": "exact"})
def a_batch_that_waits_on_the_card():
    batches(is_waiting=True)
    return BATCHED


@spares("batches-at-once")
def one_batch_at_a_time():
    batches(is_waiting=False)


@spares("batches-at-once")
def two_views_of_a_sample():
    """Two inputs of one line and one step."""
    train(mlp(layers=1).cuda(), torch.cat([torch.randn(4096, 512).cuda() for _ in range(2)]))


# -- logits -------------------------------------------------------------------------------------------


def of_classes(keeps):
    model, targets = nn.Linear(256, 8192).cuda(), torch.zeros(4096, dtype=torch.int64, device="cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        logits = model(randn(4096, 256))
        loss = F.cross_entropy(logits.float() * 1.0, targets)
        if not keeps:
            del logits
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


@fires("loss-logits", "kept by nothing but a variable", {"drop-results": "exact"})
def logits_that_a_variable_holds():
    of_classes(keeps=True)


@fires("loss-logits", "over 8192 classes", without=("drop-results",))
def logits_that_are_dropped():
    of_classes(keeps=False)


class Keys(nn.Module):
    """Gives its keys and values beside its result."""

    def __init__(self):
        super().__init__()
        self.both, self.out = nn.Linear(512, 1024), nn.Linear(512, 512)

    def forward(self, x):
        keys, values = self.both(x).chunk(2, -1)
        return x + self.out(keys.tanh() * values), (keys, values)


@fires("kept-results", "results of the last step", {"drop-results": "exact"})
def keys_and_values_of_a_training():
    """As with use_cache=True: checkpoints drop them, and the output keeps them."""

    def forward(self, x):
        cache = []
        for block in self.blocks:
            x, both = checkpoint(block, x, use_reentrant=False)
            cache.append(both)
        return x, cache

    model = Calls(forward, blocks=nn.ModuleList(Keys() for _ in range(6))).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        result = model(randn(8192, 512))
        result[0].sum().backward()
        optimizer.step()
        optimizer.zero_grad()


# -- graphs -------------------------------------------------------------------------------------------


@fires("cuda-graphs", "1 private pool")
def a_step_in_a_graph():
    model, x = mlp(layers=6).cuda(), randn(8192, 512)
    train(model, x)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(x).sum().backward()
    graph.replay()
    train(model, x)


@spares("cuda-graphs")
def a_step_without_a_graph():
    train(mlp(layers=6).cuda(), randn(8192, 512))
