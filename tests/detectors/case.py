"""What a case is: a small training script as a function, and what must be found in it, or must not be.

A case returns the bytes that its finding has, computed from its own shapes, or None where it cannot know them. A line that
ends in `# HERE` is the one that the evidence must name.
"""

import inspect

import torch

CASES = {}


def fires(finding, says="", remedies=None, without=()):
    """A case in which this must be found, with these words, at least these remedies by label, and none of `without`."""
    return lambda function: add(function, finding, True, says, remedies or {}, without)


def spares(*findings):
    """A near miss: built alike, but without the fault. None of these may be found."""
    return lambda function: [add(function, finding, False, "", {}) for finding in findings][0]  # noqa: RUF015  each is added


def add(function, finding, is_found, says, remedies, without=()):
    lines, first = inspect.getsourcelines(function)
    here = [first + number for number, line in enumerate(lines) if line.rstrip().endswith("# HERE")]
    known = CASES.setdefault(function.__name__, {"file": inspect.getfile(function), "lines": here, "function": function})
    assert known["function"] is function, f"two cases are called {function.__name__}"
    known.setdefault("expected", []).append({"id": finding, "fires": is_found, "says": says, "remedies": remedies, "without": without})
    return function


def train(model, *batch, loss=torch.sum, steps=3, optimizer=None):
    """The shortest training that there is."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        loss(model(*batch)).backward()
        optimizer.step()
        optimizer.zero_grad()


def randn(*shape, **options):
    return torch.randn(*shape, device="cuda", **options)
