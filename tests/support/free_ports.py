"""Ports for programs that must be told one.

The system hands out the ports above these to whoever does not say which: between a look and its use, one of those may
be taken by any other test.
"""

import random
import socket

_PORTS = range(10_000, 30_000)
_chance = random.SystemRandom()


def free_port() -> int:
    """One that nobody listens on, nor will by chance."""
    while True:
        port = _chance.choice(_PORTS)
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
