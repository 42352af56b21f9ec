"""Sampling to its full length: a token that nobody knows never ends it.

What a model says of the next token is not computed, so whether that is the one which ends a text is unknown. Whoever asks
is told that it is not: `generate` then runs to the length that it was given, which is the most that it can need. How many
tokens that were is said in the report. A script that reads tokens itself gets numbers that are equal to no other.
"""

import sys

import torch

from ... import contract
from .. import functions, native
from ..border import place_of
from ..card_memory import allocated
from ..file_owner import is_library
from ..guard import undisturbed
from ..import_hooks import when_imported

CRITERIA, GENERATE = "transformers.generation.stopping_criteria", "transformers.generation.utils"

# Criteria of transformers that look at tokens. Others go by lengths and clocks.
OF_TOKENS = ("EosTokenCriteria", "StopStringCriteria")

# Static functions of a search with beams: whether a better text can still come, and what takes the beams apart at the end.
BEAMS, APART = "_beam_search_has_unfinished_sequences", "_flatten_beam_dim"

# Of a model that takes more than this, tokens are not worth computing on the CPU.
TINY_BYTES = 128 << 20


class Generation:
    def __init__(self, values):
        self.values = values
        self.lengths = {}  # (file, line) -> most tokens of one text; 0 where a script reads them itself
        self.is_searched = False  # a search with beams is over
        self.asked = [0]  # how often each `generate` that runs has asked whether it is over

    def install(self):
        party = functions.VALUES
        when_imported(CRITERIA, party.callback(self.watch_criteria, f"the import of {CRITERIA}"))
        when_imported(GENERATE, party.callback(self.watch_generate, f"the import of {GENERATE}"))

    def watch_criteria(self, module):
        for name in OF_TOKENS:
            functions.VALUES.around(getattr(module, name), "__call__", self.ask, self.never_over)

    def watch_generate(self, module):
        mixin = module.GenerationMixin
        functions.VALUES.around(mixin, "generate", self.begin, self.end)
        for name, after in ((BEAMS, self.beams_go_on), (APART, self.beams_are_full)):
            if hasattr(mixin, name):
                after_static(mixin, name, after)

    # -- transformers ---------------------------------------------------------------------------------

    def begin(self, *_):
        self.asked.append(0)
        return True

    def end(self, *_):
        tokens = self.asked.pop()
        if tokens:
            place = user_line(sys._getframe(1))
            self.lengths[place] = max(tokens, self.lengths.get(place, 0))

    def ask(self, args, kwargs):
        """A criterion is about to look at tokens: any will do, since it is not believed."""
        tokens = args[1] if len(args) > 1 else kwargs["input_ids"]
        if not tokens.is_cuda:
            return None
        self.asked[-1] += 1
        with undisturbed():
            self.values.ledger.set_made(tokens, torch.zeros, tuple(tokens.shape), dtype=tokens.dtype)
        return tokens

    def never_over(self, tokens, args, kwargs, result, error):
        """A criterion gives a truth for each text of a batch: with a token that is unknown, none is over."""
        if tokens is None:
            return
        with undisturbed():
            self.values.ledger.lose(tokens)
            if isinstance(result, torch.Tensor) and result.is_cuda:
                self.know(result, False)

    def beams_go_on(self, _, args, kwargs, result, error):
        """Whether a better text can come is a matter of scores that nobody knows: it can, up to the full length."""
        if error is not None or not result.is_cuda:
            return
        hits = args[2] if len(args) > 2 else kwargs["next_token_hits_stopping_criteria"]
        with undisturbed():
            known, _ = self.values.value(hits, 1.0)
            self.is_searched = known is not None and bool(known.all())
            self.know(result, not self.is_searched)

    def beams_are_full(self, _, args, kwargs, result, error):
        """At the end of a search, each place of the tokens' beams is filled: a text has its full length."""
        if error is None and self.is_searched and result.is_cuda and result.dtype is torch.int32:
            self.is_searched = False
            with undisturbed():
                self.values.ledger.set_made(result, torch.zeros, tuple(result.shape), dtype=result.dtype)

    def know(self, truth, is_true):
        self.values.ledger.set_made(truth, torch.full, tuple(truth.shape), is_true, dtype=torch.bool)

    # -- scripts that read tokens themselves ---------------------------------------------------------------

    def is_unread(self, tensor):
        """Whether it holds tokens that are not worth computing: then who reads them is noted."""
        # Marks are kept by address, which others may have used before: what the host has made itself is known.
        is_known = not tensor.is_cuda and not self.values.ledger.is_unknown(tensor)
        is_unread = not is_known and functions.install().inner.is_of_token(tensor) and allocated() > TINY_BYTES
        if is_unread:
            self.lengths.setdefault(user_line(sys._getframe(1)), 0)
        return is_unread

    def table(self):
        return [contract.generation(tokens=tokens, file=file, line=line) for (file, line), tokens in self.lengths.items()]


def after_static(owner, name, after):
    """What stands in the place of a static function would be given the object too."""
    ours = native.Around(functions.VALUES.native, place_of(owner, name), getattr(owner, name), None, after)
    functions.VALUES.put(owner, name, lambda _, *args, **kwargs: ours(*args, **kwargs))


def user_line(frame):
    """The innermost line of the user's own code."""
    while frame is not None and is_library(frame.f_code.co_filename):
        frame = frame.f_back
    return (None, None) if frame is None else (frame.f_code.co_filename, frame.f_lineno)
