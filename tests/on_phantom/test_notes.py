"""What is noted of tensors."""

import torch
from fathom._doorway import border
from fathom._doorway.modules import Modules
from fathom._doorway.recorder import event_serials
from fathom._doorway.recorder.recorder import make_note_taker


def test_tensors_that_share_a_storage_take_its_bytes_once():
    """As gradients in a bucket: else what is left on the card would seem too little for a copy of the model."""
    bucket = torch.zeros(1000, device="cuda")
    halves = [("gradients", f"half {index}", half) for index, half in enumerate(bucket.split(500))]
    assert sum(make_note_taker(border.Party("nothing"), Modules(), event_serials.make(1)).all(halves).values()) == bucket.nbytes
