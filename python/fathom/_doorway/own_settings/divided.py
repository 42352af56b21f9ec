"""Smaller batches by the script's own accumulation: as many more of them as each is smaller."""

from ..levers.batch_keys import ELSEWHERE, KEY
from . import kinds

MOST_PARTS = 64


def settings(found):
    """Pairs of a number of batches and the batch size beside it, in halves, quarters and so on."""
    for number in [one for one in found if kinds.is_accumulation(one)]:
        sizes = [one for one in found if is_batch(one) and one.source == number.source]
        if len({one.value for one in sizes}) != 1:
            continue  # none, or it is not clear which
        parts, batch = 2, sizes[0].value
        while parts <= MOST_PARTS and batch % parts == 0:
            more = number.to(number.value * parts, "accumulate", number.value * parts, batch // parts)
            smaller = sizes[0].to(batch // parts, "accumulate")
            if more is None or smaller is None:
                break
            both = {key: more[key] + smaller[key] for key in ("words", "edits")}
            yield {**more, **both, "shown": f"{more['shown']}, {smaller['shown']}" if both["edits"] else " ".join(both["words"])}
            parts *= 2


def is_batch(found):
    name = found.name.lstrip("-").replace("-", "_")
    return type(found.value) is int and found.value > 1 and bool(KEY.match(name)) and not ELSEWHERE.search(name)
