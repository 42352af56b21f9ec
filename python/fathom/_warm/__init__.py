"""The warm server: a process with everything imported, from which trials are forked. It is run as a file, `server.py`."""
