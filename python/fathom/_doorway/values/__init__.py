"""What the card would hold: functions leave recipes, which the CPU carries out (`evaluate.py`) when a value decides
something (`values.py`). `rules.py` has the functions that need more than that.
"""
