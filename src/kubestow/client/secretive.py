"""Structs that contain secrets: their repr is only the name of the class."""

import msgspec


class Secretive(msgspec.Struct, frozen=True):
    """The base class of structs that contain secrets."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(...)"
