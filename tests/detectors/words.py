"""What looks like something else: names, switches and copies that deceive, weights of few bits, results that are kept."""

import copy
import types

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from blowups import Calls
from case import fires, randn, spares, train
from copies import wide
from training import loop, mlp

MIB = 1 << 20
WORDS = 16384


# -- formulas in Python -------------------------------------------------------------------------------


class NewGELU(nn.Module):
    """As in many models: the tanh approximation, step by step."""

    def forward(self, x):
        return 0.5 * x * (1 + torch.tanh(0.797885 * (x + 0.044715 * torch.pow(x, 3))))  # HERE


class RMSNorm(nn.Module):
    """As in many language models: in float32, and back."""

    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        wide = x.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


def between(make):
    return nn.Sequential(*(part for _ in range(4) for part in (nn.Linear(512, 512), make()))).cuda()


@fires("written-in-python", "NewGELU is written in Python", {"fused-function": "numerically equal"})
def a_gelu_in_python():
    train(between(NewGELU), randn(16384, 512))


@fires("written-in-python", "RMSNorm is written in Python: 2 tensors", {"fused-function": "numerically equal"})
def a_norm_in_python():
    train(between(lambda: RMSNorm(512)).bfloat16(), randn(32768, 512, dtype=torch.bfloat16))


@spares("written-in-python")
def functions_that_are_fused():
    train(between(lambda: nn.Sequential(nn.GELU(approximate="tanh"), nn.RMSNorm(512))), randn(16384, 512))


class Normalised(nn.Module):
    """It is called like a norm, and computes once."""

    def forward(self, x):
        return F.silu(x) * 2


@spares("written-in-python")
def a_module_that_is_only_called_like_a_norm():
    train(between(Normalised), randn(16384, 512))


class GradientsInForward(torch.autograd.Function):
    """As Liger's: the gradient of the head is made in the forward pass, and becomes the parameter's."""

    @staticmethod
    def forward(ctx, x, weight):
        gradient = torch.zeros_like(weight)
        for chunk in x.chunk(8):
            logits = chunk @ weight.t()
            gradient += logits.t() @ chunk
        ctx.save_for_backward(gradient, torch.zeros_like(x))
        return x.sum()

    @staticmethod
    def backward(ctx, above):
        gradient, of_input = ctx.saved_tensors
        return of_input * above, gradient


@spares("gradients-in-forward")
def a_gradient_that_this_forward_pass_makes():
    body, head = nn.Linear(512, 512).cuda(), nn.Parameter(randn(WORDS, 512))
    optimizer = torch.optim.SGD([*body.parameters(), head], lr=0.1)
    for _ in range(3):
        GradientsInForward.apply(body(randn(4096, 512)), head).backward()
        optimizer.step()
        optimizer.zero_grad()


# -- names that deceive -------------------------------------------------------------------------------


@spares("checkpointing-misses")
def a_word_that_is_no_switch():
    """As in open_clip: it says how a file is read."""
    model = mlp(layers=6)
    model.normalize_checkpoint_scalars = model.save_checkpoint = True
    train(model.cuda(), randn(16384, 512))


@spares("checkpointing-misses")
def a_switch_of_a_part_that_keeps_nothing():
    """A frozen encoder: there is nothing to compute again."""

    def forward(self, x):
        with torch.no_grad():
            features = self.encoder(x)
        return self.head(features)

    model = Calls(forward, encoder=mlp().requires_grad_(False), head=mlp())
    model.encoder.gradient_checkpointing = True
    train(model.cuda(), randn(16384, 512))


@fires("model-state", "parameters", {"freeze": "changes training"})
@spares("frozen-layers-save")
def networks_that_are_switched_off_in_turn():
    """A GAN: each network is frozen while the other has its turn, and when its own optimizer steps."""
    networks = [wide(layers=2).cuda() for _ in range(2)]
    optimizers = [torch.optim.Adam(network.parameters()) for network in networks]
    for network in networks:
        network.requires_grad_(False)
    for _ in range(2):
        for network, optimizer in zip(networks, optimizers):
            network.requires_grad_(True)
            networks[1](networks[0](randn(64, 1024))).sum().backward()
            network.requires_grad_(False)
            optimizer.step()
            optimizer.zero_grad()


@spares("growth")
def a_number_of_each_step():
    history = []

    def body(model, x):
        loss = model(x).sum()
        history.append(loss.detach())
        return loss

    loop(body)


# -- what is frozen, packed, copied -------------------------------------------------------------------


def with_adapters(base):
    """Low-rank matrices beside frozen layers."""
    base.requires_grad_(False)

    def forward(self, x):
        return self.base(x) + self.lora_B(self.lora_A(x))

    width = 1024
    return Calls(forward, base=base, lora_A=nn.Linear(width, 8, False), lora_B=nn.Linear(8, width, False))


@fires("model-state", "Of it adapters", {"half-frozen": "changes numerics"}, without=("freeze",))
def adapters_beside_a_frozen_model():
    train(with_adapters(wide()).cuda(), randn(8, 1024))


@fires("model-state", "4,210,688 parameters", without=("freeze", "half-frozen"))
@spares("model-copies")
def weights_of_four_bits():
    """As bitsandbytes keeps them: bytes of two numbers each, and the shape and scales of the weight beside them."""

    def forward(self, x):
        weight = self.weight.view(-1)[:1].to(x.dtype) + x.new_zeros(1024, 1024)
        return F.linear(x, weight).relu()

    def layer():
        weight = nn.Parameter(torch.zeros(1024 * 512, 1, dtype=torch.uint8, device="cuda"), requires_grad=False)
        scales = torch.zeros(1024 * 1024 // 64, device="cuda")
        weight.quant_state = types.SimpleNamespace(shape=torch.Size((1024, 1024)), absmax=scales, code=torch.zeros(16, device="cuda"))
        return Calls(forward, weight=weight)

    train(with_adapters(nn.Sequential(*(layer() for _ in range(4)))).cuda(), randn(8, 1024))


@fires("model-state", "4,194,304 parameters")
def another_model_on_the_host():
    """A trainer that builds its own: nobody moves the first to the card."""
    first = nn.ModuleList([Calls(lambda self, x: self.body(x), body=wide())])
    train(Calls(lambda self, x: self.body(x), body=wide()).cuda(), randn(8, 1024))
    assert not next(first.parameters()).is_cuda


@fires("model-copies", "1.0 × the weights", {"ema-cpu": "exact"})
def an_average_beside_a_wrapper():
    """The wrapper's names begin with `module.`, the copy's do not."""
    torch.distributed.init_process_group("nccl", store=torch.distributed.HashStore(), rank=0, world_size=1)
    model = wide().cuda()
    average = copy.deepcopy(model).requires_grad_(False)
    train(nn.parallel.DistributedDataParallel(model), randn(64, 1024))
    torch.distributed.destroy_process_group()
    return sum(p.numel() for p in average.parameters()) * 4


@fires("activations", "", {"batch": "changes batch statistics"}, without=("amp-bf16",))
def half_precision_with_wide_sums():
    """The weights have two bytes; what is kept in four is a choice of the layers."""
    layers = [Calls(lambda self, x: self.layer(x.float().tanh().bfloat16()), layer=nn.Linear(512, 512)) for _ in range(6)]
    train(nn.Sequential(*layers).cuda().bfloat16(), randn(16384, 512, dtype=torch.bfloat16))


# -- results that are kept ----------------------------------------------------------------------------


@fires("kept-results", "still referenced", {"drop-results": "exact"})
def hidden_states_that_are_returned():
    """Of a model without gradients inside of a training: nobody needs them but who holds the list."""
    teacher, model = mlp(layers=6).cuda().requires_grad_(False), mlp(layers=1).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        x = randn(16384, 512)
        hidden = []
        with torch.no_grad():
            y = x
            for layer in teacher:
                y = layer(y)  # HERE
                hidden.append(y)
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    return 6 * 16384 * 512 * 4


@fires("kept-results", "modules that made them have returned", {"drop-results": "exact"})
@torch.no_grad()
def a_list_of_hidden_states():
    model = mlp(layers=6).cuda()
    for _ in range(3):
        hidden = [randn(16384, 512)]
        for layer in model:
            hidden.append(layer(hidden[-1]))


@spares("kept-results")
@torch.no_grad()
def results_that_are_passed_on():
    model = mlp(layers=6).cuda()
    for _ in range(3):
        model(randn(16384, 512))


@spares("kept-results")
def results_that_autograd_keeps():
    train(mlp(layers=6).cuda(), randn(16384, 512))


@spares("checkpointing-misses")
def logits_behind_checkpoints():
    """What the loss keeps is more than all blocks do: no switch of theirs would change that."""

    def forward(self, x):
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return self.head(x)

    model = Calls(forward, blocks=mlp(layers=6), head=nn.Linear(512, WORDS)).cuda()
    model.gradient_checkpointing = True
    train(model, randn(4096, 512), loss=of_classes)


@spares("checkpointing-misses")
def a_switch_of_the_whole_model():
    """As in timm: it is an attribute of the model, its blocks run again, and the stem keeps a little."""

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return x

    model = Calls(forward, stem=nn.Sequential(nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, 512)), blocks=mlp(layers=16))
    model.grad_checkpointing = True
    train(model.cuda(), randn(8192, 512), loss=torch.mean)


@fires("activations", "inputs of checkpoints")
def inputs_of_checkpoints():
    train(checkpointed(use_reentrant=False), randn(8192, 512), loss=torch.mean)


@fires("inputs")
def inputs_of_old_checkpoints():
    """The block is called again with what it was given: that is data of the model's, not of the script's."""
    train(checkpointed(use_reentrant=True), randn(8192, 512, requires_grad=True), loss=torch.mean)
    return 8192 * 512 * 4 + 512  # the batch, and the number that a backward pass begins with


def checkpointed(**options):
    def forward(self, x):
        for block in self.blocks:
            x = x + checkpoint(block, x, **options)
        return x

    return Calls(forward, blocks=mlp(layers=16)).cuda()


# -- losses that compute their gradients themselves ---------------------------------------------------


class ChunkedLinearCrossEntropy(torch.autograd.Function):
    """Head and loss in one: of the logits only a chunk is there at a time."""

    @staticmethod
    def forward(ctx, x, weight, targets):
        gradient, of_weight = torch.empty_like(x), torch.zeros_like(weight)  # HERE
        for rows, out, target in zip(x.chunk(16), gradient.chunk(16), targets.chunk(16)):
            chances = F.linear(rows, weight).softmax(-1)
            chances.scatter_add_(1, target[:, None], chances.new_full((len(target), 1), -1.0))
            out.copy_(chances @ weight)
            of_weight.addmm_(chances.t(), rows)
        ctx.save_for_backward(gradient, of_weight)
        return gradient.sum()

    @staticmethod
    def backward(ctx, scale):
        gradient, of_weight = ctx.saved_tensors
        return gradient * scale, of_weight * scale, None


@fires("loss-gradients", f"float32[{WORDS}, 1024]")
@spares("loss-logits")
def a_loss_in_chunks():
    body, head = mlp(1024, layers=1).cuda(), nn.Linear(1024, WORDS, bias=False).cuda()
    optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
    targets = torch.zeros(2048, dtype=torch.int64, device="cuda")
    for _ in range(3):
        ChunkedLinearCrossEntropy.apply(body(randn(2048, 1024)), head.weight, targets).backward()
        optimizer.step()
        optimizer.zero_grad()


@spares("loss-gradients")
def a_loss_of_whole_logits():
    train(nn.Linear(1024, WORDS, bias=False).cuda(), randn(2048, 1024), loss=of_classes)


def of_classes(logits):
    return F.cross_entropy(logits, torch.zeros(len(logits), dtype=torch.int64, device="cuda"))
