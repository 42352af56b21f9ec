"""A Python that has imported torch on the phantom already: scripts of tests that are about something else than the start
are forks of it.

`python tests/warm.py SOCKET`, started by `fathom run`, one for each of pytest's workers; it ends when its standard input
does. `warm_start/sitecustomize.py` is the other end: it hands over what was to start. How a fork becomes the script is the
product's own way: `python/fathom/_warm/server.py`. The product's warm processes, which trials are forked from, are forks,
too: of a second process, at SOCKET-trials, which has also imported what every trial's does.
"""

import sys

STARTED_WITH, LOOKS_IN = frozenset(sys.modules), sys.path[:]

import functools  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import selectors  # noqa: E402
import socket  # noqa: E402

SERVER = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../python/fathom/_warm/server.py"))
STREAMS = [0, 1, 2]


def load_server():
    import importlib.util

    spec = importlib.util.spec_from_file_location("fathom_warm", SERVER)
    module = importlib.util.module_from_spec(spec)
    module.__dict__.update(STARTED_WITH=STARTED_WITH, LOOKS_IN=LOOKS_IN)
    sys.modules["fathom_warm"] = module
    spec.loader.exec_module(module)
    return module


def received(connection):
    """The request, and the standard streams of who asks."""
    length, streams, _, _ = socket.recv_fds(connection, 8, len(STREAMS))
    left, parts = int.from_bytes(length, "big"), []
    while left:
        parts.append(connection.recv(left))
        left -= len(parts[-1])
    return json.loads(b"".join(parts)), streams


def serve(listener, before):
    """Forks for each request, in a process group of its own; in a fork it returns the request."""
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    selector.register(0, selectors.EVENT_READ)
    pids, asks = {}, {}  # file of a process -> its number and who asked; who asks -> file of the process
    while True:
        for key, _ in selector.select():
            file = key.fileobj
            if file == 0:  # its other end is pytest's, which is gone
                os._exit(0)
            if file is listener:
                connection, _ = listener.accept()
                request, streams = received(connection)
                before()
                pid = os.fork()
                if pid == 0:
                    for number, stream in zip(STREAMS, streams):
                        os.dup2(stream, number)
                    for other in (*streams, *pids, selector.fileno()):
                        os.close(other)
                    for other in (*asks, connection, listener):
                        other.close()
                    return request
                os.setpgid(pid, pid)
                for stream in streams:
                    os.close(stream)
                process = os.pidfd_open(pid)
                pids[process], asks[connection] = (pid, connection), process
                selector.register(process, selectors.EVENT_READ)
                selector.register(connection, selectors.EVENT_READ)
            elif file in asks:  # who asked was killed, and has nothing else to say
                os.killpg(pids[asks[file]][0], 9)
                selector.unregister(file)
            else:
                pid, connection = pids.pop(file)
                _, status = os.waitpid(pid, 0)
                selector.unregister(file)
                os.close(file)
                del asks[connection]
                if connection in selector.get_map():
                    selector.unregister(connection)
                    connection.sendall(str(status).encode())
                connection.close()


def become_server(server, words):
    """The product's own warm process: its start finds everything imported."""
    server.load_doorway = lambda folder: None
    sys.argv[:] = words
    server.start()


def listening(path):
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    return listener


def start(path):
    for name in ("FATHOM_DOORWAY", "FATHOM_RUN"):  # the doorway opens in a fork, for the run that asks for it
        del os.environ[name]
    server = load_server()
    if not server.prepare([], is_alone=True):
        sys.exit("importing torch has touched the card")

    @functools.cache
    def import_more():
        server.load_doorway = lambda folder: None
        server.prepare(["-c", ""], is_alone=False)

    os.symlink(sys.prefix, f"{path}-of")
    of_trials, of_scripts = listening(f"{path}-trials"), listening(path)
    is_of_trials = os.fork() == 0
    request = serve(of_trials, import_more) if is_of_trials else serve(of_scripts, lambda: None)
    (of_scripts if is_of_trials else of_trials).close()
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    if is_of_trials:
        become_server(server, request["words"])
    server.leave_exit_to_parent()
    sys.modules["fathom"]._doorway.entry.ready()
    server.run_to_end(server.become_main(request["words"]))


if __name__ == "__main__":
    start(sys.argv[1])
