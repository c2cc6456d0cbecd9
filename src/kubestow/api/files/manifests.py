"""Splitting of files into manifests: every object with its position and its JSON; lists are split into their items.

JSON is unchanged: only the head of each object is read here. YAML becomes JSON. Both may have several documents.
"""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw

from kubestow.api.files.errors import DocumentError, ObjectsError
from kubestow.api.files.sources import Source, describe_error, sources
from kubestow.api.files.yaml_documents import yaml_documents

_BETWEEN = re.compile(r"(?:\s+|^---)*", re.MULTILINE)
"""Separators of JSON documents."""
_JSON = re.compile(r"\s*(\[|\{\s*([\"}]|$))")
"""The start of JSON; YAML may start with a brace, too, if its keys are not quoted."""

_MAX_CHECKED_LENGTH = 1_000_000
"""Maximum length of JSON checked for duplicate keys: larger files, written by programs, would take seconds."""


class _Metadata(msgspec.Struct):
    name: str | None = None
    generateName: str | None = None
    namespace: str | None = None


class _Head(msgspec.Struct):
    apiVersion: str | None = None
    kind: str | None = None
    metadata: _Metadata | None = None
    items: Raw = Raw()


class Document(msgspec.Struct, frozen=True):
    """A value in a file, which may be an object; the items of a list are separate documents."""

    place: str
    """The file and the position in it; the start of an error message."""
    data: bytes | Raw
    """JSON."""


class Manifest(NamedTuple):
    """An object in a file."""

    place: str
    """The file and the position in it; the start of an error message."""
    api_version: str
    kind: str
    namespace: str
    """As in the file; may be empty."""
    name: str
    """Empty if the object has only a `generateName`."""
    generate_name: str
    data: bytes | Raw
    """JSON."""

    def __str__(self) -> str:
        """Return position and object, the start of an error message."""
        name = self.name or f"{self.generate_name}..."
        return f"{self.place}: {self.kind} {self.namespace + '/' if self.namespace else ''}{name}"


def read(paths: Iterable[str], unnamed: str = "") -> list[Manifest]:
    """Read the objects in files, folders (not recursively) or, for `-`, standard input. Raises ObjectsError.

    `unnamed` is the prefix of the apiVersion of kinds that need no name; if empty, every object needs one.
    """
    found: list[Manifest] = []
    problems: list[str] = []
    for path in paths:
        try:
            for source in sources(path):
                try:
                    found += manifests(source, unnamed)
                except ObjectsError as error:
                    problems += error.problems
        except OSError as error:
            problems.append(f"{error.filename or path}: {describe_error(error)}")
        except UnicodeDecodeError as error:
            problems.append(f"{path}: {describe_error(error)}")
    if problems:
        raise ObjectsError(problems)
    return found


def manifests(source: Source, unnamed: str = "") -> list[Manifest]:
    """Return the objects in a file. Raises ObjectsError, also if there are none."""
    found: list[Manifest] = []
    problems: list[str] = []
    try:
        for document in documents(source):
            try:
                found.append(_manifest(document, unnamed))
            except DocumentError as error:
                problems.append(f"{document.place}: {error}")
    except ObjectsError as error:
        problems += error.problems
    if not found and not problems:
        problems.append(f"{source.name}: has no objects")
    if problems:
        raise ObjectsError(problems)
    return found


def documents(source: Source) -> Iterator[Document]:
    """Yield the values in a file, the items of lists one by one.

    Raises ObjectsError with all syntax errors, after all valid documents have been yielded.
    """
    try:
        yield from _json_documents(source) if _JSON.match(source.text) else _yaml_documents(source)
    except DocumentError as error:
        raise ObjectsError([f"{source.name}: {error}"]) from None


def _json_documents(source: Source) -> Iterator[Document]:
    pieces = [(source.name, source.text)]
    try:
        msgspec.json.decode(source.text, type=Raw)
    except (msgspec.DecodeError, RecursionError):
        pieces = list(_json_pieces(source))
    if len(source.text) <= _MAX_CHECKED_LENGTH:
        _reject_duplicate_keys(pieces)
    for place, piece in pieces:
        data = piece.encode()
        yield from _unpacked(place, data, [])


def _reject_duplicate_keys(pieces: Iterable[tuple[str, str]]) -> None:
    """Raise DocumentError if an object has a duplicate key, one of which would be silently ignored."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = dict(pairs)
        if len(keys) < len(pairs):
            duplicate = next(key for key in keys if sum(key == other for other, _ in pairs) > 1)
            raise DocumentError(f"{duplicate}: is given more than once in one object")
        return keys

    for _, piece in pieces:
        try:
            json.loads(piece, object_pairs_hook=unique)
        except DocumentError:
            raise
        except (RecursionError, ValueError) as error:
            raise DocumentError(f"not valid JSON: {_syntax_problem(error)}") from None


def _json_pieces(source: Source) -> Iterator[tuple[str, str]]:
    """Yield position and text of each document of a text with several. Raises DocumentError."""
    decoder, text, start, number = json.JSONDecoder(), source.text, 0, 0
    while (start := _BETWEEN.match(text, start).end()) < len(text):  # type: ignore[union-attr]
        number += 1
        try:
            _, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            raise DocumentError(f"not valid JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None
        except (RecursionError, ValueError) as error:
            raise DocumentError(f"not valid JSON: {_syntax_problem(error)}") from None
        yield f"{source.name}: document {number}", text[start:end]
        start = end


def _syntax_problem(error: RecursionError | ValueError) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _yaml_documents(source: Source) -> Iterator[Document]:
    faults: list[str] = []
    for document in yaml_documents(source.text, raw_items=True):
        place = f"{source.name}: line {document.line}"
        if document.faults:
            faults += [f"{place}: {fault}" for fault in document.faults]
        else:
            lines = [f"{source.name}: line {line}" for line in document.item_lines]
            yield from _unpacked(place, msgspec.json.encode(document.tree), lines)
    if faults:
        raise ObjectsError(faults)


def _unpacked(place: str, data: bytes | Raw, item_places: list[str]) -> Iterator[Document]:
    """Yield the document or, if it is a list, its items."""
    try:
        head = msgspec.json.decode(data, type=_Head)
        # Go encodes a list without items as null.
        has_items = bytes(head.items).startswith((b"[", b"null"))
        is_list = head.kind is not None and head.kind.endswith("List") and has_items
        items = msgspec.json.decode(head.items, type=list[Raw] | None) or [] if is_list else None
    except (msgspec.ValidationError, RecursionError):
        # Not an object; the caller reports it if it expects one.
        head, items = _Head(), None
    except msgspec.DecodeError as error:
        raise DocumentError(f"not valid JSON: {error}") from None
    if items is None:
        yield Document(place, data)
        return
    for index, item in enumerate(items):
        where = item_places[index] if item_places else f"{place}: items[{index}]"
        yield from _unpacked(where, _with_kind(item, head), [])


def _with_kind(item: Raw, head: _Head) -> bytes | Raw:
    """Add apiVersion and kind to an item of a typed list such as PodList, where the API server omits them."""
    assert head.kind is not None
    kind = head.kind.removesuffix("List")
    if not kind:
        return item
    try:
        tree: Any = msgspec.json.decode(item, type=dict[str, Any])
    except msgspec.ValidationError:
        return item
    return msgspec.json.encode({"apiVersion": head.apiVersion, "kind": kind} | tree)


def _manifest(document: Document, unnamed: str) -> Manifest:
    try:
        head = msgspec.json.decode(document.data, type=_Head)
    except msgspec.ValidationError as error:
        raise DocumentError(f"is not a Kubernetes object: {error}") from None
    if not head.apiVersion or not head.kind:
        raise DocumentError("needs apiVersion and kind, such as v1 and Pod")
    metadata = head.metadata or _Metadata()
    if not (metadata.name or metadata.generateName or (unnamed and head.apiVersion.startswith(unnamed))):
        raise DocumentError(f"{head.kind} needs metadata.name")
    name, generate_name, namespace = metadata.name or "", metadata.generateName or "", metadata.namespace or ""
    return Manifest(document.place, head.apiVersion, head.kind, namespace, name, generate_name, document.data)
