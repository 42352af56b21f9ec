"""Tensors of a class of one's own, weights that cuDNN has put in order, and code that a compiler leaves to Python."""

import pytest
import torch
from fathom._doorway.values import values

COUNT = 120_000


def data(device):
    return torch.randn(COUNT, generator=torch.Generator().manual_seed(0)).to(device)


class Plain(torch.Tensor):
    pass


class Weight(torch.nn.Parameter):
    pass


class Overriding(torch.Tensor):
    """As torchvision's classes of boxes do: functions are called without the class."""

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunctionSubclass():
            result = func(*args, **(kwargs or {}))
        return result.as_subclass(cls) if func is torch.Tensor.to else result


class Calling(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


class Below(Calling):
    """What it inherits is seen too."""


def boxes(x):
    tv_tensors = pytest.importorskip("torchvision.tv_tensors")
    return tv_tensors.BoundingBoxes(x[:400].view(100, 4), format="XYXY", canvas_size=(10, 10))


CLASSES = {kind.__name__: lambda x, kind=kind: x.as_subclass(kind) for kind in (Plain, Overriding, Calling, Below)}
CLASSES |= {
    "Weight": lambda x: Weight(x, requires_grad=False),
    "boxes": boxes,
    "brought to the card": lambda x: x.cpu().clone().as_subclass(Overriding).to(x.device),
    "plain, brought to the card": lambda x: x.cpu().clone().as_subclass(Plain).to(x.device),
}


def seen(make, device):
    """What a script sees of it: sizes, counts, and what it has written into."""
    x = data(device)
    tensor = make(x)
    doubled = tensor * 2
    kept = doubled[doubled > 1]
    tensor.add_(1)
    tensor[tensor > 2] = 0
    return kept.shape, int((kept > 3).sum()), (tensor > 0.5).sum().item(), int((x > 0.5).sum()), tensor.cpu().max().item() > 1


@pytest.mark.parametrize("name", CLASSES)
def test_classes_that_leave_functions_alone_or_call_them(name, fresh):
    expected = seen(CLASSES[name], "cpu")
    before = values.get().decisions.total()
    assert seen(CLASSES[name], "cuda") == expected
    assert values.get().decisions.total() == before


@pytest.mark.parametrize("kind", [torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN])
def test_recurrent_layers_have_the_weights_that_they_had(kind, fresh):
    def counts(device):
        torch.manual_seed(0)
        layer = kind(10, 8, num_layers=2, bidirectional=True).to(device)
        given, _ = layer(data(device)[:6000].view(200, 3, 10))
        chosen = given.argmax(2)
        return torch.bincount(chosen.flatten(), minlength=16).tolist(), given[chosen > 4].shape

    expected = counts("cpu")
    before = values.get().decisions.total()
    assert counts("cuda") == expected
    assert values.get().decisions.total() == before


def test_the_compiler_leaves_rules_alone(fresh, capfd):
    """Code that it breaks off at a mask runs as Python code, and so do our rules."""
    compiled = torch.compile(lambda x: x[x > 0] * 2, backend="eager")
    x = data("cuda")
    assert compiled(x).shape == (int((data("cpu") > 0).sum()),)
    said = capfd.readouterr()
    assert "fathom" not in said.err and "rules.py" not in said.err, said.err
