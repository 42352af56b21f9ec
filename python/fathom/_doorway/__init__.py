"""The doorway: our code inside the user's process, on the phantom or under `fathom.record()`. Nothing here is public.

It begins in `entry.py`, which the phantom opens while torch is imported. `watch.py` follows steps, phases and peaks;
`functions.py` sees every torch function, for the rooms `recorder/` (who allocates) and `values/` (what the card would
hold). `levers/` are changes of a script that a trial makes, `world/` stands in for other ranks. What of ours PyTorch and
the script come to call passes the `border.py`, where our errors end; the hot paths behind `native.py` are Rust.

Of the rest of the package only `contract.py` is used here, which says what processes tell each other.
"""
