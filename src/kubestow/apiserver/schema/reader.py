"""Parse the tables of types: one text file per API group, one block per type, one line per field.

    group io.k8s.api.core.v1

    Container  # One program of a pod.
      name* string  # Name of the container.
      ports [ContainerPort] merge=containerPort keys=containerPort,protocol
      imagePullPolicy Always|Never|IfNotPresent

A star marks a required field; `[T]` is a list, `{T}` a map with free keys, `A|B` an enumeration of strings. With
`merge` or `merge=KEY`, strategic merge patches merge the list (by KEY); with `retainkeys` they remove keys that the
patch does not name. `keys=` and `set` identify list items for server-side apply; `atomic` values change as a whole.
"""

from collections.abc import Iterator
from functools import cache
from importlib import resources
from types import MappingProxyType

from kubestow.apiserver.schema.types import SCALARS, Choice, Field, ListOf, MapOf, Struct, Type

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
_CORE = "io.k8s.api.core.v1"
_API = "io.k8s.api."


@cache
def structs(*tables: str) -> MappingProxyType[str, Struct]:
    """Return all structs by OpenAPI name; with arguments, only those in tables whose names start with one of them."""
    found: dict[str, Struct] = {}
    lines: list[tuple[Struct, str]] = []
    folder = resources.files("kubestow.apiserver.schema") / "tables"
    for file in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if tables and not file.name.startswith(tables):
            continue
        for struct, field_line in _read(file.name, file.read_text(encoding="utf-8")):
            found[struct.openapi_name] = struct
            if field_line:
                lines.append((struct, field_line))
    for struct, line in lines:
        field = _field(line, struct.group, found)
        struct.fields[field.name] = field
    for struct in found.values():
        struct.finish()
    return MappingProxyType(found)


def struct_named(group: str, name: str) -> Struct:
    """Return a struct by its OpenAPI group, such as `core.v1`, and its name."""
    return structs()[f"{_API}{group}.{name}"]


def struct_of(api_version: str, kind: str) -> Struct | None:
    """Return the type of a kind, or None; for the core group, other tables are not read."""
    found = structs("core", "meta") if api_version == "v1" else structs()
    return found.get(openapi_name(api_version, kind))


def openapi_name(api_version: str, kind: str) -> str:
    """Return the name of a kind's type in OpenAPI documents."""
    group, _, version = api_version.rpartition("/")
    if group == "apiextensions.k8s.io":
        return f"io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.{version}.{kind}"
    if group == "apiregistration.k8s.io":
        return f"io.k8s.kube-aggregator.pkg.apis.apiregistration.{version}.{kind}"
    for suffix in (".apiserver.k8s.io", ".authorization.k8s.io", ".k8s.io"):
        group = group.removesuffix(suffix)
    return f"{_API}{group or 'core'}.{version}.{kind}"


def _read(file: str, text: str) -> Iterator[tuple[Struct, str]]:
    group = ""
    struct: Struct | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        code, _, description = line.partition("  # ")
        if code.startswith("group "):
            group = code.split()[1]
        elif not code.startswith(" "):
            name, *flags = code.split()
            struct = Struct(group, name, description, atomic="atomic" in flags)
            yield struct, ""
        elif struct is None or not group:
            raise ValueError(f"{file}:{number}: a field outside of a type")
        else:
            yield struct, line


def _field(line: str, group: str, found: dict[str, Struct]) -> Field:
    code, _, text = line.partition("  # ")
    name, type_text, *flags = code.split()
    field = Field(name.rstrip("*"), _type(type_text, group, found), required=name.endswith("*"), description=text)
    for flag in flags:
        key, _, value = flag.partition("=")
        if key == "merge":
            field.merge = True
            field.merge_key = value or None
        elif key == "retainkeys":
            field.retain_keys = True
        elif key == "keys":
            field.keys = tuple(value.split(","))
        elif key == "set":
            field.set = True
        elif key == "atomic":
            field.atomic = True
        else:
            raise ValueError(f"{group}: field {field.name}: unknown flag {flag}")
    return field


def _type(text: str, group: str, found: dict[str, Struct]) -> Type:
    if text.startswith("["):
        return ListOf(_type(text[1:-1], group, found))
    if text.startswith("{"):
        return MapOf(_type(text[1:-1], group, found))
    if text in SCALARS:
        return SCALARS[text]
    if "|" in text:
        return Choice(tuple(text.split("|")))
    for name in (f"{group}.{text}", f"{_CORE}.{text}", f"{_META}.{text}", f"{_API}{text}"):
        if name in found:
            return found[name]
    raise ValueError(f"{group}: unknown type {text}")
