"""The served resources: the built-in ones, from the tables of kinds/, and the custom ones of each server."""

from types import MappingProxyType

from kubestow.apiserver.kinds import access, core, extensions, infrastructure, workloads
from kubestow.apiserver.kinds.resource import Resource as Resource

RESOURCES: tuple[Resource, ...] = (
    *core.KINDS,
    *workloads.KINDS,
    *infrastructure.KINDS,
    *access.KINDS,
    *extensions.KINDS,
)

BY_STORAGE: MappingProxyType[str, Resource] = MappingProxyType(
    {one.storage: one for one in RESOURCES if one.stored and one.conversion is None}
)
"""The resource in the stored version, by storage name: `pods`, `deployments.apps`, ..."""

BY_KIND: MappingProxyType[tuple[str, str], Resource] = MappingProxyType(
    {(one.api_version, one.kind): one for one in RESOURCES}
)
"""The resources by apiVersion and kind."""


class Registry:
    """The resources of one server. `version` changes with them; derived data is then computed again."""

    def __init__(self) -> None:
        self.version = 0
        self.by_path: dict[tuple[str, str, str], Resource] = {}
        """The resources by group, version and plural name."""
        self.by_kind: dict[tuple[str, str], Resource] = {}
        for one in RESOURCES:
            self._add(one)

    @property
    def resources(self) -> tuple[Resource, ...]:
        """All resources, in the order in which they were added."""
        return tuple(self.by_path.values())

    def _add(self, resource: Resource) -> None:
        self.by_path[(resource.group, resource.version, resource.plural)] = resource
        self.by_kind[(resource.api_version, resource.kind)] = resource

    def replace(self, old: tuple[Resource, ...], new: tuple[Resource, ...]) -> None:
        """Remove custom resources and add others."""
        for one in old:
            del self.by_path[(one.group, one.version, one.plural)]
            del self.by_kind[(one.api_version, one.kind)]
        for one in new:
            self._add(one)
        self.version += 1
