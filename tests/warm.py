"""A Python that has imported torch on the phantom already: runs that test something else than the start are forks of it.

`fathom run … -- python -I tests/warm.py SOCKET WORDS…` stands for `fathom run … -- python WORDS…`. The small program
that is started so hands its words, environment, folder and standard streams over to the server, and ends as the fork
ends. The server is `fathom run -- python tests/warm.py SOCKET`, one for each of pytest's workers, and ends when its
standard input does. How a fork becomes the script is the product's own way: `python/fathom/_warm/server.py`.
"""

import json
import os
import socket
import sys

STARTED_WITH, LOOKS_IN = frozenset(sys.modules), sys.path[:]
SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../python/fathom/_warm/server.py")
STREAMS = [0, 1, 2]


# -- the small program ---------------------------------------------------------------------------------------------------


def hand_over(path, words):
    """Ends as the fork ends, by its exit code or its signal."""
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(path)
    request = {"words": words, "environment": dict(os.environ), "folder": os.getcwd()}
    message = json.dumps(request).encode()
    socket.send_fds(connection, [len(message).to_bytes(8, "big")], STREAMS)
    connection.sendall(message)
    answer = connection.recv(64)
    if not answer:
        sys.exit("the warm Python is gone")
    status = int(answer)
    if os.WIFSIGNALED(status):
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))


# -- the server ----------------------------------------------------------------------------------------------------------


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


def serve(path):
    """Forks for each request; in a fork it returns the request."""
    import selectors

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
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
                pid = os.fork()
                if pid == 0:
                    for number, stream in zip(STREAMS, streams):
                        os.dup2(stream, number)
                    for other in (*streams, *pids, selector.fileno()):
                        os.close(other)
                    for other in (*asks, connection, listener):
                        other.close()
                    return request
                for stream in streams:
                    os.close(stream)
                process = os.pidfd_open(pid)
                pids[process], asks[connection] = (pid, connection), process
                selector.register(process, selectors.EVENT_READ)
                selector.register(connection, selectors.EVENT_READ)
            elif file in asks:  # who asked was killed, and has nothing else to say
                os.kill(pids[asks[file]][0], 9)
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


def start(path):
    for name in ("FATHOM_DOORWAY", "FATHOM_RUN"):  # the doorway opens in a fork, for the run that asks for it
        del os.environ[name]
    server = load_server()
    if not server.prepare([], is_alone=True):
        sys.exit("importing torch has touched the card")
    request = serve(path)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    server.leave_exit_to_parent()
    sys.modules["fathom"]._doorway.entry.ready()
    server.run_to_end(server.become_main(request["words"]))


if __name__ == "__main__":
    path, *words = sys.argv[1:]
    hand_over(path, words) if words else start(path)
