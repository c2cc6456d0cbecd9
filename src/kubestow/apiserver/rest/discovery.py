"""Discovery documents: the groups, versions and resources served, one by one or aggregated."""

import re
from typing import Any

from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.kinds.subresources import SUBRESOURCES
from kubestow.apiserver.resources import Registry
from kubestow.apiserver.store.records import encode
from kubestow.telemetry.build import KUBERNETES

Object = dict[str, Any]
AGGREGATED = b"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERSION = {
    "major": KUBERNETES.split(".")[0],
    "minor": KUBERNETES.split(".")[1],
    "gitVersion": f"v{KUBERNETES}+kubestow",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "python",
}
_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?\Z")


def wants_aggregated(accept: str) -> bool:
    """Return whether a client accepts aggregated discovery."""
    return any(
        "as=APIGroupDiscoveryList" in choice and "v=v2" in choice.replace("v=v2beta1", "")
        for choice in accept.split(",")
    )


def _rank(version: str) -> tuple[int, int, int, str]:
    """Return the sort key of a version: stable before beta before alpha, newer before older, other names last."""
    match = _VERSION.match(version)
    if match is None:
        return (3, 0, 0, version)
    major, stage, minor = match.groups()
    return ({None: 0, "beta": 1, "alpha": 2}[stage], -int(major), -int(minor or 0), "")


class Discovery:
    """The discovery documents of a registry; cached until the registry changes."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._cache: dict[str, bytes | None] = {}
        self._version = -1

    def answer(self, parts: list[str], aggregated: bool) -> bytes | None:
        """Return the document at /api, /apis and below; None if there is none."""
        if self._version != self._registry.version:
            self._cache.clear()
            self._version = self._registry.version
        key = "/".join(parts) + ("+" if aggregated else "")
        if key not in self._cache:
            document = self._document(parts, aggregated)
            if document is None:
                return None
            self._cache[key] = encode(document)
        return self._cache[key]

    def _document(self, parts: list[str], aggregated: bool) -> Object | None:
        core = parts[0] == "api"
        if len(parts) == 1 and aggregated:
            return self._aggregated(core)
        if parts == ["api"]:
            server = {"clientCIDR": "0.0.0.0/0", "serverAddress": ""}
            return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": [server]}
        if parts == ["apis"]:
            listed = [_group(name, versions) for name, versions in self._groups().items() if name]
            return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}
        if not core and len(parts) == 2 and parts[1] in self._groups():
            return {"kind": "APIGroup", "apiVersion": "v1", **_group(parts[1], self._groups()[parts[1]])}
        if len(parts) == (2 if core else 3):
            return self._resources(*(("", parts[1]) if core else parts[1:]))
        return None

    def _groups(self) -> dict[str, list[str]]:
        """Return the versions of each group, the preferred one first."""
        found: dict[str, list[str]] = {}
        for one in self._registry.resources:
            versions = found.setdefault(one.group, [])
            if one.version not in versions:
                versions.append(one.version)
        return {name: sorted(versions, key=_rank) for name, versions in found.items()}

    def _resources_of(self, group: str, version: str) -> list[Resource]:
        return [one for one in self._registry.resources if one.group == group and one.version == version]

    def _resources(self, group: str, version: str) -> Object | None:
        listed: list[Object] = []
        for one in self._resources_of(group, version):
            entry: Object = {
                "name": one.plural,
                "singularName": one.singular,
                "namespaced": one.namespaced,
                "kind": one.kind,
                "verbs": list(one.verbs),
            }
            listed.append(entry | _names(one))
            for sub in one.subresources:
                gvk, verbs = _subresource(one, sub)
                below: Object = {
                    "name": f"{one.plural}/{sub}",
                    "singularName": "",
                    "namespaced": one.namespaced,
                    "kind": gvk["kind"],
                    "verbs": verbs,
                }
                if (gvk["group"], gvk["version"]) != (one.group, one.version):
                    below |= {"group": gvk["group"], "version": gvk["version"]}
                listed.append(below)
        api_version = f"{group}/{version}" if group else version
        found = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": listed}
        return found if listed else None

    def _aggregated(self, core: bool) -> Object:
        items = []
        for name, found in self._groups().items():
            if (name == "") is core:
                versions = [
                    {
                        "version": version,
                        "resources": [_aggregated_resource(one) for one in self._resources_of(name, version)],
                        "freshness": "Current",
                    }
                    for version in found
                ]
                items.append({"metadata": {"name": name, "creationTimestamp": None}, "versions": versions})
        version = "apidiscovery.k8s.io/v2"
        return {"kind": "APIGroupDiscoveryList", "apiVersion": version, "metadata": {}, "items": items}


def _group(group: str, found: list[str]) -> Object:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in found]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


def _names(one: Resource) -> Object:
    names: Object = {}
    if one.short_names:
        names["shortNames"] = list(one.short_names)
    if one.categories:
        names["categories"] = list(one.categories)
    return names


def _subresource(resource: Resource, sub: str) -> tuple[dict[str, str], list[str]]:
    entry = SUBRESOURCES[sub]
    group, version, kind = entry.gvk or (resource.group, resource.version, resource.kind)
    return {"group": group, "version": version, "kind": kind}, list(entry.verbs)


def _aggregated_resource(one: Resource) -> Object:
    entry: Object = {
        "resource": one.plural,
        "responseKind": {"group": one.group, "version": one.version, "kind": one.kind},
        "scope": "Namespaced" if one.namespaced else "Cluster",
        "singularResource": one.singular,
        "verbs": list(one.verbs),
    } | _names(one)
    if one.subresources:
        entry["subresources"] = [
            {"subresource": sub, "responseKind": gvk, "verbs": verbs}
            for sub in one.subresources
            for gvk, verbs in (_subresource(one, sub),)
        ]
    return entry
