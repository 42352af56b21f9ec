"""What moves and where it goes: the motion encoder, its memory over the observed frames, and a stochastic differential
equation that carries the motion into the future.

The equation is solved with its adjoint: forward keeps the state at the asked times only, backward walks the solution
back and recomputes one small step at a time. So its activations are those of one step, however many are taken.
"""

import torch
from torch import nn


class MotionEncoder(nn.Sequential):
    """Differences of neighbouring frames (frames, 1, H, W) to motion features (frames, 4 x channels, H/4, W/4)."""

    def __init__(self, settings):
        width = settings.model_channels
        layers = [nn.Conv2d(settings.in_channels, width, 5, padding=2), nn.ReLU()]
        for _ in range(settings.n_downs - 1):
            layers += [nn.MaxPool2d(2), nn.Conv2d(width, 2 * width, 5, padding=2), nn.ReLU()]
            width *= 2
        layers += [nn.MaxPool2d(2), nn.Conv2d(width, 2 * width, 7, padding=3), nn.ReLU()]
        super().__init__(*layers)
        self.channels = 2 * width


class ConvGru(nn.Module):
    """A gated recurrent cell whose gates are convolutions."""

    def __init__(self, channels):
        super().__init__()
        self.gates = nn.Conv2d(2 * channels, 2 * channels, 3, padding=1)
        self.candidate = nn.Conv2d(2 * channels, channels, 3, padding=1)

    def forward(self, seen, state):
        update, reset = torch.sigmoid(self.gates(torch.cat([seen, state], dim=1))).chunk(2, dim=1)
        candidate = torch.tanh(self.candidate(torch.cat([seen, reset * state], dim=1)))
        return (1 - update) * state + candidate


class Drift(nn.Sequential):
    """Convolutions with tanh between them; the last one begins at zero, so that motion begins constant."""

    def __init__(self, channels, layers):
        parts = [nn.Conv2d(channels, channels, 3, padding=1)]
        for _ in range(layers + 1):
            parts += [nn.Tanh(), nn.Conv2d(channels, channels, 3, padding=1)]
        nn.init.zeros_(parts[-1].weight)
        nn.init.zeros_(parts[-1].bias)
        super().__init__(*parts)


class MotionSde(nn.Module):
    """dm = f(m) dt + tanh(g(m)) dW in the sense of Stratonovich."""

    def __init__(self, channels, layers, dt):
        super().__init__()
        self.f, self.g = Drift(channels, layers), Drift(channels, layers)
        self.dt = dt

    def forward(self, state, times):
        """The states at `times[1:]`, from `state` at `times[0]`: a list."""
        seed = int(torch.randint(2**31, ()))
        return Adjoint.apply(self, seed, tuple(times), state, *self.parameters())

    def step(self, state, dt, noise):
        """One step of Euler-Heun: the noise term is the mean of its values before and after."""
        before = torch.tanh(self.g(state))
        after = torch.tanh(self.g(state + before * noise))
        return state + self.f(state) * dt + 0.5 * (before + after) * noise

    def steps(self, begin, end):
        """The lengths of the steps between two times."""
        count = max(1, round((end - begin) / self.dt))
        return [(end - begin) / count] * count


class Adjoint(torch.autograd.Function):
    """Solves the equation without a graph; backward rebuilds it step by step, from the end to the beginning."""

    @staticmethod
    def forward(ctx, sde, seed, times, state, *parameters):
        ctx.sde, ctx.seed, ctx.times = sde, seed, times
        results, number = [], 0
        for begin, end in zip(times, times[1:], strict=False):
            for dt in sde.steps(begin, end):
                state = sde.step(state, dt, noise_of(seed, number, dt, state)).float()
                number += 1
            results.append(state)
        ctx.save_for_backward(*results)
        return tuple(results)

    @staticmethod
    def backward(ctx, *gradients):
        sde, parameters = ctx.sde, list(ctx.sde.parameters())
        totals = [torch.zeros_like(p) for p in parameters]
        spans = [sde.steps(*span) for span in zip(ctx.times, ctx.times[1:], strict=False)]
        number = sum(map(len, spans))
        gradient = torch.zeros_like(gradients[-1])
        for steps, result, arriving in reversed(list(zip(spans, ctx.saved_tensors, gradients, strict=True))):
            state, gradient = result, gradient + arriving
            for dt in reversed(steps):
                number -= 1
                noise = noise_of(ctx.seed, number, dt, state)
                with torch.no_grad():
                    state = sde.step(state, -dt, -noise)
                with torch.enable_grad():
                    state = state.detach().requires_grad_()
                    stepped = sde.step(state, dt, noise)
                gradient, *found = torch.autograd.grad(stepped, [state, *parameters], gradient)
                for total, part in zip(totals, found, strict=True):
                    total += part
                state = state.detach()
        return None, None, None, gradient, *totals


def noise_of(seed, number, dt, like):
    """The increment of the Brownian motion in one step: the same whenever it is asked for."""
    source = torch.Generator(like.device).manual_seed(seed + number)
    return torch.randn(like.shape, generator=source, device=like.device) * abs(dt) ** 0.5
