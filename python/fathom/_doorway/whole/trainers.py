"""Trainers that count for themselves: HF's and Lightning's evaluate, save and end after so many steps or epochs."""

from .. import border
from ..import_hooks import when_imported

TRAINERS = border.Party("the trainer's own limits may not be lowered")

# Epochs of a trainer that is told how many there are: then what follows the training is seen too.
EPOCHS = 3


def install(batches, steps):
    limits = Limits(batches, steps)
    when_imported("transformers.trainer", TRAINERS.callback(limits.watch_transformers))
    for name in ("lightning.pytorch.trainer.trainer", "pytorch_lightning.trainer.trainer"):
        when_imported(name, TRAINERS.callback(limits.watch_lightning))


def lower(owner, name, most):
    """A whole number that is larger; a share of the training is short as it is."""
    value = getattr(owner, name, None)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value > max(most, 1):
        setattr(owner, name, most)


class Limits:
    def __init__(self, batches, steps):
        self.batches, self.steps = batches, steps

    def watch_transformers(self, module):
        TRAINERS.around(module.Trainer, "train", before=self.lower_transformers)

    def lower_transformers(self, args, _):
        arguments = args[0].args
        epoch = max(1, self.batches // max(1, arguments.gradient_accumulation_steps))
        for name in ("eval_steps", "save_steps", "logging_steps"):
            lower(arguments, name, epoch)
        lower(arguments, "max_steps", self.steps)
        lower(arguments, "num_train_epochs", EPOCHS)

    def watch_lightning(self, module):
        TRAINERS.around(module.Trainer, "fit", before=self.lower_lightning)

    def lower_lightning(self, args, _):
        trainer = args[0]
        lower(trainer, "val_check_interval", self.batches)
        lower(trainer, "check_val_every_n_epoch", 1)
        lower(trainer.fit_loop, "max_epochs", EPOCHS)
        lower(trainer.fit_loop.epoch_loop, "max_steps", self.steps)
        for callback in trainer.checkpoint_callbacks:
            lower(callback, "_every_n_train_steps", self.batches)
            lower(callback, "_every_n_epochs", 1)
