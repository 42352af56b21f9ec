"""Python reads this file before it does anything else, since PYTHONPATH names its folder (`Warm` of ../conftest.py).

Where a script is about to start, this process hands its words, environment, folder and standard streams over to a Python
that has imported torch already (`../warm.py`), and ends as the fork there ends. What must start by itself goes on.
"""

import os
import sys


def is_script(words):
    """A script, `-c` or `-m`, without options of Python's, beside the phantom, that need not confine itself by its start."""
    if not words or words[0].startswith("-") and words[0] not in ("-c", "-m"):
        return False
    by_launcher = '"launcher"' in os.environ.get("FATHOM_CONFINED", "")
    return "libfathom_phantom" in os.environ.get("LD_PRELOAD", "") and not by_launcher


def connected(path):
    """The way to the warm Python, if it is still there."""
    import socket

    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(path)
    except OSError:
        return None
    return connection


def hand_over(connection, words):
    """Ends as the fork ends, by its exit code or its signal."""
    import json
    import socket

    request = {"words": words, "environment": dict(os.environ), "folder": os.getcwd()}
    message = json.dumps(request).encode()
    socket.send_fds(connection, [len(message).to_bytes(8, "big")], [0, 1, 2])
    connection.sendall(message)
    answer = connection.recv(64)
    if not answer:
        os.write(2, b"the warm Python is gone\n")
        os._exit(1)
    status = int(answer)
    if os.WIFSIGNALED(status):
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


def start(path):
    words = sys.orig_argv[1:]
    if is_script(words) and os.readlink(f"{path}-of") == sys.prefix:
        is_of_trials = words[0].endswith("_warm/server.py")
        connection = connected(path + "-trials" * is_of_trials)
        if connection:
            hand_over(connection, words)


if "WARM_PYTHON" in os.environ:
    # Processes that a script starts begin by themselves: some are handed more files than the standard streams.
    del os.environ["PYTHONPATH"]
    start(os.environ.pop("WARM_PYTHON"))
