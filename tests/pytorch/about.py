"""Which torch a Python has; torch itself is not imported."""

from importlib.metadata import version

print(version("torch"))
