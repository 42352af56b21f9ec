"""The optimizers of a script, and which of them this thread may look at. None is held."""

import threading
import weakref


class Optimizers:
    def __init__(self):
        self.threads = weakref.WeakKeyDictionary()  # optimizer -> the thread that used it last
        self.on_card = set()  # ids of those that hold parameters on the card

    def used(self, optimizer):
        self.threads[optimizer] = threading.get_ident()

    def made(self, optimizer):
        self.used(optimizer)
        if any(p.is_cuda for group in optimizer.param_groups for p in group["params"]):
            self.on_card.add(id(optimizer))

    def stepped(self, optimizer):
        self.used(optimizer)
        self.on_card.add(id(optimizer))

    def are_own(self):
        """Whether no other thread trains."""
        return len(self.own()) == len(self.threads)

    def own(self):
        """Those of this thread, if several threads train: the gradients of others may be written at this moment."""
        every = list(self.threads.items())
        if len({thread for _, thread in every}) < 2:
            return [optimizer for optimizer, _ in every]
        others = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}
        return [optimizer for optimizer, thread in every if thread not in others]

    def parameters(self):
        """Those of every thread."""
        return parameters_of(list(self.threads))

    def own_parameters(self):
        return parameters_of(self.own())


def parameters_of(optimizers):
    return [parameter for optimizer in optimizers for group in optimizer.param_groups for parameter in group["params"]]
