"""Who holds each byte: PyTorch's memory history (`history.py`) joined with parts of the script (`event_serials.py`) and
with what tensors are (`names.py`, `areas.py`, `backward.py`). `recorder.py` puts it together.
"""
