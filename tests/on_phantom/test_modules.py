"""Names of modules."""

import contextlib
import sys
import threading

import pytest
import torch
from fathom._doorway.modules import Modules
from fathom._doorway.native import live_objects


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


@contextlib.contextmanager
def meanwhile(work):
    """Another thread does this again and again, and Python changes between the two as often as it can."""
    errors, is_over, interval = [], threading.Event(), sys.getswitchinterval()

    def again_and_again():
        while not is_over.is_set() and not errors:
            try:
                work()
            except BaseException as error:
                errors.append(error)

    thread = threading.Thread(target=again_and_again)
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert not errors, errors


def test_what_another_thread_is_building_is_not_held():
    """Python refuses to lengthen a tuple that somebody else holds: `Sequential(*(Linear(2, 2) for _ in range(9)))`."""
    modules = [torch.nn.Linear(2, 2) for _ in range(3)]
    with meanwhile(lambda: tuple(number for number in range(100))):
        for _ in range(20):
            assert [module for module in live_objects({torch.nn.Linear}) if module in modules] == modules


@pytest.mark.parametrize("walk", ["search", "add_root"])
def test_modules_that_another_thread_is_building_are_no_error(walk):
    model = torch.nn.Sequential(*(torch.nn.Linear(2, 2) for _ in range(50)))

    more = torch.nn.Linear(2, 2)

    def build():
        for part in (model, model[25]):
            part.add_module("more", more)
        for part in (model, model[25]):
            del part.more

    with meanwhile(build):
        for _ in range(30):
            modules = Modules()
            modules.search() if walk == "search" else modules.add_root(model, is_primary=True)
            assert len(modules.paths) == len(modules.classes) > 50
