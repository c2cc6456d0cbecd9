"""Objects to apply at the start: read and checked before anything runs, then sent to the API server in file order.

Namespaces, priority classes and definitions of kinds go first, since others need them; a custom kind must be defined
before it is used. Each object is applied by the server (create it, or
change what the manifest says), so that starting again with the same files changes nothing.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from kubestow.apiserver.custom.resources import resources_described
from kubestow.apiserver.resources import BY_KIND, Resource
from kubestow.client.api import JSON, ApiClient
from kubestow.config import ConfigError
from kubestow.config.document import parse
from kubestow.model.failures import ApiError

_SUFFIXES = (".yaml", ".yml", ".json")
_SEPARATOR = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_APPLY = "application/apply-patch+yaml"
_QUERY = "fieldManager=kubestow&fieldValidation=Strict"
_FIRST = ("Namespace", "PriorityClass", "CustomResourceDefinition")

Kinds = dict[tuple[str, str], Resource]


class ManifestError(Exception):
    """Manifests that cannot be used; a line for each names file, document and object."""


class Manifest(NamedTuple):
    """One object, and where it was found."""

    place: str
    resource: Resource
    namespace: str
    name: str
    """Empty if the server is to make one up."""
    body: dict[str, Any]

    def __str__(self) -> str:
        """File, document and object."""
        name = self.name or self.body["metadata"]["generateName"] + "..."
        return f"{self.place}: {self.resource.kind} {self.namespace + '/' if self.namespace else ''}{name}"

    @property
    def path(self) -> str:
        """Where objects of this kind are, in the API."""
        resource = self.resource
        group = f"/apis/{resource.group}" if resource.group else "/api"
        scope = f"/namespaces/{quote(self.namespace, safe='')}" if self.namespace else ""
        return f"{group}/{resource.version}{scope}/{resource.plural}"


def read(sources: Iterable[str]) -> list[Manifest]:
    """The objects in files, folders (not those inside them) or, for `-`, standard input; raises ManifestError."""
    found: list[Manifest] = []
    problems: list[str] = []
    known = dict(BY_KIND)
    for source in sources:
        try:
            for name, text in _texts(source):
                _read_text(name, text, known, found, problems)
        except OSError as error:
            problems.append(f"{error.filename or source}: cannot be read: {error.strerror or error}")
        except UnicodeDecodeError as error:
            problems.append(f"{source}: is not UTF-8 text: {error.reason} at byte {error.start}")
    if problems:
        raise ManifestError("\n".join(problems))
    return found


async def apply(manifests: Iterable[Manifest], client: ApiClient) -> None:
    """Send them to the server; raises ManifestError when it refuses some, once all were tried."""
    problems = []
    for manifest in sorted(manifests, key=lambda manifest: manifest.resource.kind not in _FIRST):
        body = msgspec.json.encode(manifest.body)
        try:
            if manifest.name:
                path = f"{manifest.path}/{quote(manifest.name, safe='')}?{_QUERY}&force=true"
                await client.request("PATCH", path, body, _APPLY)
            else:
                await client.request("POST", f"{manifest.path}?{_QUERY}", body, JSON)
        except ApiError as error:
            problems.append(f"{manifest}: {error.status.message or error}")
    if problems:
        raise ManifestError("\n".join(problems))


def _texts(source: str) -> Iterator[tuple[str, str]]:
    if source == "-":
        yield "standard input", sys.stdin.buffer.read().decode()
        return
    path = Path(source)
    if not path.is_dir():
        yield source, path.read_bytes().decode()
        return
    files = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES and file.is_file())
    if not files:
        raise FileNotFoundError(2, f"the folder has no files that end with {', '.join(_SUFFIXES)}", source)
    for file in files:
        yield str(file), file.read_bytes().decode()


def _read_text(name: str, text: str, known: Kinds, found: list[Manifest], problems: list[str]) -> None:
    before = len(found) + len(problems)
    for number, document in enumerate(_documents(text), start=1):
        place = f"{name}: document {number}"
        try:
            tree = parse(document)
        except ConfigError as error:
            problems += [f"{place}: {problem}" for problem in error.problems]
            continue
        if tree is not None:
            _take(place, tree, known, found, problems)
    if len(found) + len(problems) == before:
        problems.append(f"{name}: has no objects")


def _documents(text: str) -> Iterator[str]:
    """Each that is more than comments, with as many empty lines before it as make its line numbers the file's."""
    start = 0
    for separator in (*_SEPARATOR.finditer(text), None):
        document = text[start : separator.start() if separator else len(text)]
        if any(line.strip() and not line.lstrip().startswith("#") for line in document.splitlines()):
            yield "\n" * text.count("\n", 0, start) + document
        start = separator.end() if separator else len(text)


def _take(place: str, tree: Any, known: Kinds, found: list[Manifest], problems: list[str]) -> None:
    if isinstance(tree, dict) and tree.get("kind") == "List" and isinstance(tree.get("items"), list):
        for index, item in enumerate(tree["items"]):
            _take(f"{place}: items[{index}]", item, known, found, problems)
        return
    try:
        found.append(_manifest(place, tree, known))
        if found[-1].resource.kind == "CustomResourceDefinition":
            known |= {(one.api_version, one.kind): one for one in resources_described(tree)}
    except ManifestError as error:
        problems.append(f"{place}: {error}")


def _manifest(place: str, tree: Any, known: Kinds) -> Manifest:
    if not isinstance(tree, dict):
        raise ManifestError("is not an object with apiVersion, kind and metadata")
    api_version, kind, metadata = tree.get("apiVersion"), tree.get("kind"), tree.get("metadata")
    if not isinstance(api_version, str) or not isinstance(kind, str):
        raise ManifestError("needs apiVersion and kind, such as v1 and Pod")
    resource = known.get((api_version, kind))
    if resource is None or not resource.stored:
        others = sorted(version for version, other in known if other == kind and version != api_version)
        hint = f"; there is one in {' and '.join(others)}" if others else ""
        raise ManifestError(f"no kind {kind} in {api_version} is served here{hint}")
    if not isinstance(metadata, dict):
        raise ManifestError(f"{kind} needs metadata with a name")
    name, prefix = metadata.get("name") or "", metadata.get("generateName")
    if not isinstance(name, str) or not (name or (isinstance(prefix, str) and prefix)):
        raise ManifestError(f"{kind} needs metadata.name, as text")
    namespace = (metadata.get("namespace") or "default") if resource.namespaced else ""
    if not isinstance(namespace, str):
        raise ManifestError(f"{kind} {name}: metadata.namespace must be text")
    return Manifest(place, resource, namespace, name, tree)
