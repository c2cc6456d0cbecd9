"""Strict decoding of a tree into Structs: each unknown field and each wrong type is a problem with its path.

The fields and types of the Structs are the schema. As in Kubernetes, null means absent, in a list it means the empty
value; numbers are not strings; integers must fit their width.
"""

import base64
import binascii
import json
import struct
import types
import typing
from typing import Any, TypeVar, Union

import msgspec

from kubestow.config.configuration import (
    API_VERSION,
    KIND,
    Int64,
    Nanoseconds,
    PluginConfig,
    Profile,
    SchedulerConfiguration,
)
from kubestow.config.durations import Duration
from kubestow.config.plugin_args import ARGS_OF_PLUGIN
from kubestow.config.problems import Problem, child

S = TypeVar("S", bound=msgspec.Struct)

_TYPE_FIELDS = frozenset({"apiVersion", "kind"})
_INVALID: Any = object()


def decode(tree: object, problems: list[Problem]) -> SchedulerConfiguration:
    """Decode a configuration, without filling in defaults; problems are added to `problems`."""
    decoder = Decoder(problems)
    configuration = decoder.whole(SchedulerConfiguration, tree, KIND, API_VERSION)
    profiles = tuple(
        _with_typed_args(profile, f"profiles[{index}]", decoder) for index, profile in enumerate(configuration.profiles)
    )
    return msgspec.structs.replace(configuration, profiles=profiles)


def _with_typed_args(profile: Profile, path: str, decoder: "Decoder") -> Profile:
    entries = []
    for index, entry in enumerate(profile.pluginConfig):
        if entry.name in ARGS_OF_PLUGIN:
            args = _typed_args(entry, f"{path}.pluginConfig[{index}].args", decoder)
            entries.append(PluginConfig(entry.name, args))
        else:
            entries.append(entry)
    return msgspec.structs.replace(profile, pluginConfig=tuple(entries))


def _typed_args(entry: PluginConfig, path: str, decoder: "Decoder") -> object:
    kind = ARGS_OF_PLUGIN[entry.name]
    raw = {} if entry.args is None else entry.args
    if isinstance(raw, dict):
        for field, accepted in (("kind", kind.__name__), ("apiVersion", API_VERSION)):
            if raw.get(field) not in (None, "", accepted):
                message = f"must be {accepted} for plugin {entry.name}, not {_described(raw[field])}"
                decoder.problems.append(Problem(child(path, field), message))
    return decoder.struct(kind, raw, path, _TYPE_FIELDS)


class Decoder:
    """Decodes trees into Structs; problems are added to `problems`."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = problems

    def whole(self, struct: type[S], tree: object, kind: str, api_version: str) -> S:
        """Decode a complete file; with another apiVersion or kind than the given ones, its fields are not decoded."""
        if not isinstance(tree, dict):
            self.problems.append(Problem("", f"must be a {kind}, not {_described(tree)}"))
            return struct()
        before = len(self.problems)
        for field, accepted in (("kind", kind), ("apiVersion", api_version)):
            given = tree.get(field)
            if given is None or given == "":
                self.problems.append(Problem(field, f"is missing; it must be {accepted}"))
            elif given != accepted:
                both = f'no kind "{tree.get("kind")}" is known in version "{tree.get("apiVersion")}"'
                self.problems.append(Problem(field, f"{both}; {field} must be {accepted}"))
        return struct() if len(self.problems) > before else self.struct(struct, tree, "", _TYPE_FIELDS)

    def struct(self, kind: type[S], tree: object, path: str, ignored: frozenset[str] = frozenset()) -> S:
        """Decode a Struct; invalid fields keep their defaults."""
        if not isinstance(tree, dict):
            self._wrong(path, "a mapping", tree)
            return kind()
        hints = typing.get_type_hints(kind, include_extras=True)
        values = {}
        for key, value in tree.items():
            if key in hints:
                decoded = self.value(hints[key], value, child(path, key))
                if decoded is not _INVALID:
                    values[key] = decoded
            elif key not in ignored:
                self.problems.append(Problem(child(path, key), "is not a known field"))
        return kind(**values)

    def value(self, hint: Any, value: object, path: str) -> Any:
        """Decode a value of the annotated type; return _INVALID if it is null (absent) or wrong (reported)."""
        origin = typing.get_origin(hint)
        if origin in (Union, types.UnionType):
            (hint,) = (option for option in typing.get_args(hint) if option is not types.NoneType)
            return _INVALID if value is None else self.value(hint, value, path)
        if hint is Duration:
            return self._duration(value, path)
        if hint is object:
            return value
        if value is None:
            return _INVALID
        if origin is tuple:
            return self._list(typing.get_args(hint)[0], value, path)
        if origin is dict:
            return self._text_map(value, path)
        if hint == Int64:
            return self._integer(value, 64, path)
        if hint == Nanoseconds:
            return self._integer(value, 64, path, "a number of nanoseconds, such as 5000000000 for 5s")
        if issubclass(hint, msgspec.Struct):
            return self.struct(hint, value, path)
        return self._scalar(hint, value, path)

    def _scalar(self, hint: type, value: object, path: str) -> Any:
        if hint is bool:
            return value if isinstance(value, bool) else self._wrong(path, "true or false", value)
        if hint is str:
            return value if isinstance(value, str) else self._wrong(path, "a string", value)
        if hint is bytes:
            return self._base64(value, path)
        if hint is float:
            return self._float32(value, path)
        return self._integer(value, 32, path)

    def _list(self, hint: Any, value: object, path: str) -> Any:
        if not isinstance(value, list):
            return self._wrong(path, "a list", value)
        items = []
        for index, item in enumerate(value):
            decoded = hint() if item is None else self.value(hint, item, f"{path}[{index}]")
            if decoded is not _INVALID:
                items.append(decoded)
        return tuple(items)

    def _text_map(self, value: object, path: str) -> Any:
        if not isinstance(value, dict):
            return self._wrong(path, "a mapping", value)
        texts = {}
        for key, item in value.items():
            decoded = "" if item is None else self.value(str, item, child(path, key))
            if decoded is not _INVALID:
                texts[key] = decoded
        return texts

    def _integer(self, value: object, bits: int, path: str, expected: str = "an integer") -> Any:
        if isinstance(value, bool) or not isinstance(value, int):
            return self._wrong(path, expected, value)
        if not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            return self._wrong(path, f"an integer of {bits} bits", value)
        return value

    def _float32(self, value: object, path: str) -> Any:
        if isinstance(value, bool) or not isinstance(value, int | float):
            return self._wrong(path, "a number", value)
        try:
            stored = struct.pack("<f", value)
        except OverflowError:
            return self._wrong(path, "a number of 32 bits", value)
        # The shortest decimal with the same 32-bit value: 0.1 is written as 0.1.
        return next(
            number
            for number in (float(f"{value:.{digits}g}") for digits in range(1, 18))
            if struct.pack("<f", number) == stored
        )

    def _base64(self, value: object, path: str) -> Any:
        if not isinstance(value, str):
            return self._wrong(path, "base64 text", value)
        try:
            return base64.b64decode(value.replace("\n", "").replace("\r", ""), validate=True)
        except binascii.Error:
            return self._wrong(path, "base64 text", value)

    def _duration(self, value: object, path: str) -> Any:
        if not isinstance(value, str):
            return self._wrong(path, "a duration such as 10s or 1m30s", value)
        try:
            return Duration.parse(value)
        except ValueError as error:
            self.problems.append(Problem(path, str(error)))
            return _INVALID

    def _wrong(self, path: str, expected: str, value: object) -> Any:
        self.problems.append(Problem(path, f"must be {expected}, not {_described(value)}"))
        return _INVALID


def _described(value: object) -> str:
    if value is None:
        return "empty"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, str):
        return f"the string {json.dumps(value, ensure_ascii=False)}"
    return json.dumps(value)
