"""Fathom's doorway into a Python process. It holds no analysis: see ``crates/``."""

__version__ = "0.1.0"
