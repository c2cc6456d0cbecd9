"""Decoding of the arguments of out-of-tree plugins, by the annotation of the constructor.

    class ZoneArgs(msgspec.Struct):        # or a dataclass
        zone: str
        weight: int = 1

    class PreferZone:
        def __init__(self, args: ZoneArgs, handle): ...

As with built-in plugins, `apiVersion` and `kind` may be given, and are left out. Without an annotation the plugin gets
the mapping from the configuration file, or None.
"""

import dataclasses
import inspect
import typing
from types import NoneType
from typing import Any

import msgspec

_TYPE_FIELDS = ("apiVersion", "kind")


class ArgsError(ValueError):
    """Arguments that the plugin does not accept; the message names the field."""


def decode_args(plugin: Any, raw: Any) -> Any:
    """Return the arguments for a plugin's constructor; raises ArgsError."""
    wanted = _annotation(plugin)
    if wanted is None:
        return raw
    if not isinstance(raw, dict | None):
        raise ArgsError(f"args: must be a mapping, not {type(raw).__name__}")
    if wanted is NoneType:
        unknown = next((name for name in raw or {} if name not in _TYPE_FIELDS), None)
        if unknown is not None:
            raise ArgsError(f"args.{unknown}: is not a known field; the plugin has no arguments")
        return None
    fields = _fields(wanted)
    given = {name: value for name, value in (raw or {}).items() if name in fields or name not in _TYPE_FIELDS}
    try:
        decoded = msgspec.convert(given, wanted)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at `$")
        field = f"args{where.rstrip('`')}"
        raise ArgsError(f"{field}: {what[:1].lower()}{what[1:]}") from None
    unknown = _unknown_field(given, msgspec.to_builtins(decoded), "args")
    if unknown is not None:
        raise ArgsError(f"{unknown}: is not a known field; there are: {', '.join(fields)}")
    return decoded


def _annotation(plugin: Any) -> Any:
    """Return the annotation of the constructor's first parameter, if that is a class with fields, or None."""
    function = plugin.__init__ if inspect.isclass(plugin) else plugin
    parameters = list(inspect.signature(plugin).parameters)
    try:
        hints = typing.get_type_hints(function)
    except NameError as error:
        raise ArgsError(f"the annotations of the constructor cannot be read: {error}") from None
    wanted = hints.get(parameters[0]) if parameters else None
    is_class_of_fields = inspect.isclass(wanted) and (
        issubclass(wanted, msgspec.Struct) or dataclasses.is_dataclass(wanted) or typing.is_typeddict(wanted)
    )
    return wanted if is_class_of_fields or wanted is NoneType else None


def _fields(wanted: Any) -> list[str]:
    if issubclass(wanted, msgspec.Struct):
        return list(wanted.__struct_encode_fields__)
    return list(typing.get_type_hints(wanted))


def _unknown_field(given: Any, known: Any, path: str) -> str | None:
    """Return the path of the first given field that does not exist after decoding."""
    if isinstance(given, dict) and isinstance(known, dict):
        for key, value in given.items():
            if str(key) not in known:
                return f"{path}.{key}"
            found = _unknown_field(value, known[str(key)], f"{path}.{key}")
            if found is not None:
                return found
    if isinstance(given, list) and isinstance(known, list | tuple):
        for number, (value, there) in enumerate(zip(given, known, strict=False)):
            found = _unknown_field(value, there, f"{path}[{number}]")
            if found is not None:
                return found
    return None
