"""Names of modules."""

import torch
from fathom.modules import Modules


def test_a_loss_made_on_the_spot_has_one_name_and_is_not_searched_for():
    modules = Modules()
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    outer = modules.number(model)
    inside = {modules.number(torch.nn.CrossEntropyLoss(), outer) for _ in range(3)}
    outside = {modules.number(torch.nn.CrossEntropyLoss()) for _ in range(3)}
    (inside,), (outside,) = inside, outside
    assert modules.paths[inside] == modules.paths[outer] + ".CrossEntropyLoss"
    assert modules.paths[outside] == "CrossEntropyLoss"
    assert modules.searches == 1


def test_a_loss_that_was_there_first_has_its_own_name():
    model, losses = torch.nn.Sequential(torch.nn.Linear(2, 2)), [torch.nn.MSELoss() for _ in range(2)]
    modules = Modules()
    modules.number(model)
    assert len({modules.number(loss) for loss in losses}) == 2
