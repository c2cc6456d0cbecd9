"""Discovery: which groups, versions and resources there are, one by one or all at once."""

from functools import cache
from typing import Any

from kubestow.apiserver.resources import GROUPS, RESOURCES, SUBRESOURCE_KINDS, Resource
from kubestow.apiserver.store.records import encode

Object = dict[str, Any]
AGGREGATED = b"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.4+kubestow",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "python",
}


def wants_aggregated(accept: str) -> bool:
    """Whether a client would take everything at once."""
    return any(
        "as=APIGroupDiscoveryList" in choice and "v=v2" in choice.replace("v=v2beta1", "")
        for choice in accept.split(",")
    )


def _versions(group: str) -> list[str]:
    return list(dict.fromkeys(one.version for one in RESOURCES if one.group == group))


def _of(group: str, version: str) -> list[Resource]:
    return [one for one in RESOURCES if one.group == group and one.version == version]


def _group(group: str) -> Object:
    versions = [{"groupVersion": f"{group}/{version}", "version": version} for version in _versions(group)]
    return {"name": group, "versions": versions, "preferredVersion": versions[0]}


@cache
def core_versions() -> bytes:
    """The answer to /api."""
    return encode(
        {
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": ""}],
        }
    )


@cache
def groups() -> bytes:
    """The answer to /apis."""
    listed = [_group(group) for group in GROUPS if group]
    return encode({"kind": "APIGroupList", "apiVersion": "v1", "groups": listed})


@cache
def group(name: str) -> bytes | None:
    """The answer to /apis/GROUP."""
    if not name or name not in GROUPS:
        return None
    return encode({"kind": "APIGroup", "apiVersion": "v1", **_group(name)})


@cache
def resources(group_name: str, version: str) -> bytes | None:
    """The answer to /api/v1 and /apis/GROUP/VERSION."""
    found = _of(group_name, version)
    if not found:
        return None
    listed: list[Object] = []
    for one in found:
        entry: Object = {
            "name": one.plural,
            "singularName": one.singular,
            "namespaced": one.namespaced,
            "kind": one.kind,
            "verbs": list(one.verbs),
        }
        if one.short_names:
            entry["shortNames"] = list(one.short_names)
        if one.categories:
            entry["categories"] = list(one.categories)
        listed.append(entry)
        for sub in one.subresources:
            sub_group, sub_version, kind, verbs = _subresource(one, sub)
            below: Object = {
                "name": f"{one.plural}/{sub}",
                "singularName": "",
                "namespaced": one.namespaced,
                "kind": kind,
                "verbs": list(verbs),
            }
            if (sub_group, sub_version) != (one.group, one.version):
                below |= {"group": sub_group, "version": sub_version}
            listed.append(below)
    if group_name == "" and version == "v1":
        binding = {"name": "bindings", "singularName": "binding", "namespaced": True, "kind": "Binding"}
        listed.append({**binding, "verbs": ["create"]})
    api_version = f"{group_name}/{version}" if group_name else version
    return encode({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": api_version, "resources": listed})


def _subresource(resource: Resource, sub: str) -> tuple[str, str, str, tuple[str, ...]]:
    return SUBRESOURCE_KINDS.get(sub, (resource.group, resource.version, resource.kind, ("get", "patch", "update")))


@cache
def aggregated(core: bool) -> bytes:
    """Everything at once, for /api or /apis."""
    items = []
    for name in GROUPS:
        if (name == "") is not core:
            continue
        versions = [
            {
                "version": version,
                "resources": [_aggregated_resource(one) for one in _of(name, version)],
                "freshness": "Current",
            }
            for version in _versions(name)
        ]
        items.append({"metadata": {"name": name, "creationTimestamp": None}, "versions": versions})
    return encode(
        {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
    )


def _aggregated_resource(one: Resource) -> Object:
    entry: Object = {
        "resource": one.plural,
        "responseKind": {"group": one.group, "version": one.version, "kind": one.kind},
        "scope": "Namespaced" if one.namespaced else "Cluster",
        "singularResource": one.singular,
        "verbs": list(one.verbs),
    }
    if one.short_names:
        entry["shortNames"] = list(one.short_names)
    if one.categories:
        entry["categories"] = list(one.categories)
    if one.subresources:
        entry["subresources"] = [
            {
                "subresource": sub,
                "responseKind": {"group": group, "version": version, "kind": kind},
                "verbs": list(verbs),
            }
            for sub in one.subresources
            for group, version, kind, verbs in (_subresource(one, sub),)
        ]
    return entry
