"""Settings that hold secrets: what is printed of one is its name alone."""

import msgspec


class Secretive(msgspec.Struct, frozen=True):
    """The base of such settings."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"
