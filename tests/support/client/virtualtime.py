"""Tests over real sockets in virtual time."""

from kubestow.testing.jumping_loop import VirtualTimeLoop, run

__all__ = ["VirtualTimeLoop", "run"]
