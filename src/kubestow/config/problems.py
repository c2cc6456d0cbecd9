"""Problems of a configuration, reported together in one `ConfigError`.

A path is that of the field in the file: `profiles[0].pluginConfig[1].args.resources[0].weight`; it is empty for a
problem of the file as a whole.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

_END = re.compile(r"(?=[.[])|^|$")


class Problem(msgspec.Struct, frozen=True):
    path: str
    message: str

    def __str__(self) -> str:
        """Return one line, even if a name from the file contains line breaks."""
        line = f"{self.path}: {self.message}" if self.path else self.message
        return line.replace("\n", "\\n")


class ConfigError(ValueError):
    """A configuration is invalid; `problems` is never empty."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems


def joined(decoding: Sequence[Problem], validation: Iterable[Problem]) -> list[Problem]:
    """Return the problems of both, without those of validation that may follow from a field that is not decoded.

    They are about the field, a part of it, or a section as a whole that contains it.
    """
    undecoded = {problem.path for problem in decoding}
    incomplete = {section for path in undecoded for section in _sections(path)}
    independent = (
        one for one in validation if one.path not in incomplete and undecoded.isdisjoint(_sections(one.path))
    )
    return [*decoding, *independent]


def _sections(path: str) -> Iterator[str]:
    """Yield the paths of the whole file, of each section that contains a field, and of the field itself."""
    yield from (path[: end.start()] for end in _END.finditer(path))


def child(path: str, name: str) -> str:
    """Return the path of a field of the section at `path`."""
    return f"{path}.{name}" if path else name
