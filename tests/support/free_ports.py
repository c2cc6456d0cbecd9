"""Ports for programs that cannot choose one themselves.

The system hands out the ports above these to sockets bound without a port: between a look and its use, one of those may
be taken by any other test.
"""

import random
import socket

_PORTS = range(10_000, 30_000)
_chance = random.SystemRandom()


def free_port() -> int:
    """Return a port that is not in use, and that the system does not hand out."""
    while True:
        port = _chance.choice(_PORTS)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
