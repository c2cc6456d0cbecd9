"""Profiles in the format of pprof, for `go tool pprof` and other programs that read it.

A file is one gzipped protocol buffer: samples, each a stack of locations and some numbers; locations are lines of
functions; names are indices into one table of strings. This module can only write such files.
"""

import gzip
from collections.abc import Iterable, Mapping, Sequence
from types import CodeType
from typing import NamedTuple

from kubestow.client.protobuf import length_delimited, varint

# The field numbers of pprof's profile.proto.
_SAMPLE_TYPE, _SAMPLE, _LOCATION, _FUNCTION, _STRING = 1, 2, 4, 5, 6
_TIME, _DURATION, _PERIOD_TYPE, _PERIOD = 9, 10, 11, 12
_COMMENT, _DEFAULT_TYPE = 13, 14


class Line(NamedTuple):
    """A line of the program."""

    function: str
    file: str
    number: int


Stack = tuple[Line, ...]
"""The lines of a call stack, innermost first."""


class Measure(NamedTuple):
    """The name and the unit of a number."""

    name: str
    unit: str


def line_of(code: CodeType, number: int | None) -> Line:
    """Return a line of a function, with the function's qualified name and file."""
    return Line(code.co_qualname, code.co_filename, number or code.co_firstlineno)


class Profile(NamedTuple):
    """A profile; `write` returns its file."""

    measures: Sequence[Measure]
    samples: Mapping[Stack, Sequence[int]]
    period: tuple[Measure, int]
    time_ns: int
    duration_ns: int = 0
    comment: str = ""

    def write(self) -> bytes:
        """Return the content of the file."""
        table = _Table()
        parts = [length_delimited(_SAMPLE_TYPE, table.measure(measure)) for measure in self.measures]
        for stack, values in self.samples.items():
            places = [table.location(line) for line in stack]
            parts.append(length_delimited(_SAMPLE, _packed(1, places) + _packed(2, values)))
        parts.append(_number(_TIME, self.time_ns) + _number(_DURATION, self.duration_ns))
        parts.append(length_delimited(_PERIOD_TYPE, table.measure(self.period[0])) + _number(_PERIOD, self.period[1]))
        if self.comment:
            parts.append(_number(_COMMENT, table.string(self.comment)))
        parts.append(_number(_DEFAULT_TYPE, table.string(self.measures[-1].name)))
        return gzip.compress(b"".join((*parts, *table.messages())), mtime=0)


class _Table:
    """Strings, functions and locations, each written once and referenced by number."""

    def __init__(self) -> None:
        self._strings = {"": 0}
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[Line, int] = {}

    def string(self, text: str) -> int:
        return self._strings.setdefault(text, len(self._strings))

    def measure(self, measure: Measure) -> bytes:
        return _number(1, self.string(measure.name)) + _number(2, self.string(measure.unit))

    def location(self, line: Line) -> int:
        self._functions.setdefault((line.function, line.file), len(self._functions) + 1)
        return self._locations.setdefault(line, len(self._locations) + 1)

    def messages(self) -> Iterable[bytes]:
        for line, number in self._locations.items():
            place = _number(1, self._functions[line.function, line.file]) + _number(2, line.number)
            yield length_delimited(_LOCATION, _number(1, number) + length_delimited(4, place))
        for (name, file), number in self._functions.items():
            names = _number(2, self.string(name)) + _number(3, self.string(name)) + _number(4, self.string(file))
            yield length_delimited(_FUNCTION, _number(1, number) + names)
        for text in self._strings:
            yield length_delimited(_STRING, text.encode())


def _number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def _packed(field: int, values: Iterable[int]) -> bytes:
    return length_delimited(field, b"".join(map(varint, values)))
