"""How a training loop is written: what it keeps alive, and loops that keep nothing."""

import collections

import torch
from torch import nn

from case import fires, randn, spares
from copies import wide

MIB = 1 << 20


def mlp(width=512, layers=4):
    return nn.Sequential(*(nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(layers)))


def loop(body, model=None, steps=5, **options):
    """`body(model, x)` gives a loss; the rest is as it should be."""
    model = (model or mlp()).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        body(model, randn(4096, 512, **options)).backward()
        optimizer.step()
        optimizer.zero_grad()


# -- references ---------------------------------------------------------------------------------------


@fires("growth", "graphs of earlier steps stay alive", {"detach": "exact"})
def losses_in_a_list():
    history = []

    def body(model, x):
        y = model(x).exp()
        history.append(y)  # the graph of every step; a backward pass frees what its nodes keep, but not `exp`'s result
        return y.sum()

    loop(body)
    return 4 * 4096 * 512 * 4


@fires("growth", "tensors of earlier steps stay alive", {"detach": "exact"})
def outputs_in_a_list():
    history = []

    def body(model, x):
        y = model(x)
        history.append(y.detach().clone())  # HERE
        return y.sum()

    loop(body)
    return 4 * 4096 * 512 * 4


@spares("growth")
def numbers_in_a_list():
    history = []

    def body(model, x):
        loss = model(x).sum()
        history.append(loss.item())
        return loss

    loop(body)


@spares("growth")
def a_bounded_queue():
    history = collections.deque(maxlen=2)

    def body(model, x):
        y = model(x)
        history.append(y.detach().clone())
        return y.sum()

    loop(body, steps=8)


@fires("retained-graph", "retain_graph=True", {"no-retain": "exact"})
def a_graph_that_is_kept():
    model = mlp().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = model(randn(4096, 512)).sum()
        loss.backward(retain_graph=True)
        other = model(randn(4096, 512)).sum()
        (loss + other).backward()
        optimizer.step()
        optimizer.zero_grad()
    return 4 * 4096 * 512 * 4


@spares("retained-graph")
def two_losses_one_pass():
    model = mlp().cuda()
    loop(lambda model, x: model(x).sum() + model(x).square().sum(), model)


@spares("retained-graph")
def a_penalty_on_gradients():
    """The graph of a gradient needs the first graph: it is used again by the one backward pass."""

    def body(model, x):
        x.requires_grad_()
        [gradient] = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        return gradient.norm(2, dim=1).sub(1).square().mean()

    loop(body)


@spares("unused-parameters", "retained-graph", "growth")
def two_optimizers_in_turn():
    """A GAN: the critic's optimizer steps while the generator has no gradient."""
    maker, critic = mlp().cuda(), mlp().cuda()
    of_maker = torch.optim.Adam(maker.parameters())
    of_critic = torch.optim.Adam(critic.parameters())
    for _ in range(4):
        fake = maker(randn(4096, 512))
        (critic(fake.detach()).mean() - critic(randn(4096, 512)).mean()).backward()
        of_critic.step()
        of_critic.zero_grad()
        (-critic(fake).mean()).backward()
        of_maker.step()
        of_maker.zero_grad()
        of_critic.zero_grad()


@spares("retained-graph")
def a_pass_that_does_not_reach_the_generator():
    """What the generator keeps outlives the critic's backward pass, which has no use for it."""
    maker, critic = mlp(layers=6).cuda(), nn.Linear(512, 1).cuda()
    of_maker, of_critic = (torch.optim.SGD(model.parameters(), lr=0.1) for model in (maker, critic))
    for _ in range(3):
        fake = maker(randn(4096, 512))
        critic(fake.detach()).mean().backward()
        of_critic.step()
        critic(fake).exp().mean().backward()
        of_maker.step()
        for optimizer in (of_maker, of_critic):
            optimizer.zero_grad()


# -- evaluation ---------------------------------------------------------------------------------------


def evaluated(evaluate):
    """A step, and then an evaluation with larger batches."""
    model = mlp().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model(randn(64, 512)).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    model.eval()
    evaluate(model)


@fires("evaluation-with-grad", "while gradients were on", {"no-grad": "exact"})
def evaluation_with_gradients():
    evaluated(lambda model: model(randn(16384, 512)))
    return 5 * 16384 * 512 * 4  # the results of four functions, and of the layer before the last


@spares("evaluation-with-grad")
def evaluation_without_gradients():
    evaluated(torch.no_grad()(lambda model: model(randn(16384, 512))))


@spares("evaluation-with-grad")
def fine_tuning_in_evaluation_mode():
    """As with frozen batch norms: the mode is that of evaluation, and a backward pass follows."""
    loop(lambda model, x: model(x).sum(), mlp().eval())


# -- gradients and the optimizer ----------------------------------------------------------------------


def big_steps(body, optimizer=torch.optim.SGD, **options):
    """A model that is larger than its activations."""
    model = wide(2048).cuda()
    optimizer = optimizer(model.parameters(), lr=0.1, **options)
    for _ in range(3):
        body(model, optimizer)


def with_a_metric(model):
    """A loss, and something to log whose intermediate results put the peak into the forward pass."""
    y = model(randn(8192, 2048))
    with torch.no_grad():
        torch.stack([y.softmax(-1)] * 6).mean()
    return y.mean()


@fires("gradients-in-forward", "The optimizer has used them", {"zero-grad": "exact"})
def gradients_freed_after_the_forward_pass():
    def body(model, optimizer):
        loss = with_a_metric(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    big_steps(body)
    return 4 * 16 * MIB


@spares("gradients-in-forward")
def gradients_freed_before_the_forward_pass():
    def body(model, optimizer):
        optimizer.zero_grad()
        with_a_metric(model).backward()
        optimizer.step()

    big_steps(body)


@fires("gradients-in-forward", "gradients are accumulated")
def gradients_that_are_accumulated():
    def body(model, optimizer):
        for _ in range(2):
            with_a_metric(model).backward()
        optimizer.step()
        optimizer.zero_grad()

    big_steps(body)
    return 4 * 16 * MIB


@fires("optimizer-temporaries", "foreach", {"fused-optimizer": "numerically equal", "no-foreach": "exact"})
def a_step_on_lists():
    big_steps(one_step, torch.optim.Adam, foreach=True)
    return 4 * 2048 * 2048 * 4


@spares("optimizer-temporaries")
def a_fused_step():
    big_steps(one_step, torch.optim.Adam, fused=True)


def one_step(model, optimizer):
    model(randn(8, 2048)).mean().backward()
    optimizer.step()
    optimizer.zero_grad()
