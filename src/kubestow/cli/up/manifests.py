"""Objects to apply at the start: read and checked before anything runs, then sent to the API server in file order.

Namespaces, priority classes and definitions of kinds go first, since others and plugins need them; a custom kind must
be defined before it is used. Each object is applied by the server (create it, or change what the manifest says), so
that starting again with the same files changes nothing.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import quote

import msgspec

from kubestow.api import files as objects
from kubestow.api.failures import ApiError
from kubestow.api.files import Manifest, ObjectsError
from kubestow.apiserver.custom.resources import resources_of_manifest
from kubestow.apiserver.resources import BY_KIND, Resource
from kubestow.client.api import JSON, ApiClient
from kubestow.client.requests import path_of

_APPLY = "application/apply-patch+yaml"
_QUERY = "fieldManager=kubestow&fieldValidation=Strict"

Kinds = dict[tuple[str, str], Resource]


class Applicable(NamedTuple):
    """An object in a file, and the resource it is one of."""

    manifest: Manifest
    resource: Resource

    @property
    def comes_first(self) -> bool:
        """Whether others may need it."""
        return self.resource.kind in ("Namespace", "PriorityClass", "CustomResourceDefinition")

    @property
    def path(self) -> str:
        """The URL path of the collection that the object belongs to."""
        return path_of(self.resource.api_version, self.resource.plural, quote(self.manifest.namespace, safe=""))


def read(sources: Iterable[str]) -> list[Applicable]:
    """Return the objects in files and folders. Raises ObjectsError for kinds neither served nor defined before."""
    found: list[Applicable] = []
    problems: list[str] = []
    known = dict(BY_KIND)
    for manifest in objects.read(sources):
        resource = known.get((manifest.api_version, manifest.kind))
        if resource is None or not resource.stored:
            problems.append(f"{manifest.place}: {_unknown(manifest, known)}")
            continue
        namespace = (manifest.namespace or "default") if resource.namespaced else ""
        found.append(Applicable(manifest._replace(namespace=namespace), resource))
        if resource.kind == "CustomResourceDefinition":
            tree: dict[str, Any] = msgspec.json.decode(manifest.data)
            known |= {(one.api_version, one.kind): one for one in resources_of_manifest(tree)}
    if problems:
        raise ObjectsError(problems)
    return found


async def apply(applicables: Iterable[Applicable], client: ApiClient) -> list[str]:
    """Apply the objects at the server, all even if some fail; return why some were refused."""
    problems = []
    for applicable in applicables:
        manifest = applicable.manifest
        body = bytes(manifest.data)
        try:
            if manifest.name:
                path = f"{applicable.path}/{quote(manifest.name, safe='')}?{_QUERY}&force=true"
                await client.request("PATCH", path, body, _APPLY)
            else:
                await client.request("POST", f"{applicable.path}?{_QUERY}", body, JSON)
        except ApiError as error:
            problems.append(f"{manifest}: {error.status.message or error}")
    return problems


def _unknown(manifest: Manifest, known: Kinds) -> str:
    api_version, kind = manifest.api_version, manifest.kind
    others = sorted(version for version, other in known if other == kind and version != api_version)
    hint = f"; there is one in {' and '.join(others)}" if others else ""
    return f"no kind {kind} in {api_version} is served here{hint}"
