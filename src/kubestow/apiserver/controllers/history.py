"""ControllerRevisions: the current and previous templates of a StatefulSet or DaemonSet, which rollbacks restore."""

from typing import NamedTuple

import msgspec

from kubestow.apiserver.controllers.api import Api, Object, reference
from kubestow.apiserver.controllers.deployments import template_hash

_REVISIONS = "controllerrevisions.apps"
HASH = "controller-revision-hash"


class Revision(NamedTuple):
    """One revision of a template."""

    name: str
    hash: str
    number: int
    template: Object


class History:
    """Creates and deletes the ControllerRevisions of owners."""

    def __init__(self, api: Api) -> None:
        self._api = api

    def revisions(self, owner: Object) -> list[Revision]:
        """Return all revisions, oldest first; the last one is that of the current template, created if missing."""
        found = sorted(
            (_read(one.object()) for one in self._api.owned(owner["metadata"]["uid"], _REVISIONS)), key=_order
        )
        template = owner["spec"]["template"]
        same = next((one for one in reversed(found) if one.template == template), None)
        if same is None:
            found.append(self._create(owner, found[-1].number + 1 if found else 1))
        elif same is not found[-1]:
            # A template that is restored becomes the newest revision again.
            number = found[-1].number + 1
            namespace = owner["metadata"]["namespace"]
            self._api.update(_REVISIONS, namespace, same.name, lambda one: one.update(revision=number))
            found.remove(same)
            found.append(same._replace(number=number))
        return found

    def _create(self, owner: Object, number: int) -> Revision:
        metadata, template = owner["metadata"], owner["spec"]["template"]
        digest = template_hash(template)
        created = self._api.create(
            _REVISIONS,
            metadata["namespace"],
            {
                "metadata": {
                    "name": f"{metadata['name']}-{digest}",
                    "labels": {**template.get("metadata", {}).get("labels", {}), HASH: digest},
                    "annotations": _copied(metadata.get("annotations", {})),
                    "ownerReferences": [reference(owner)],
                },
                "revision": number,
                # Go clients compare the bytes with their own encoding.
                "data": msgspec.to_builtins({"spec": {"template": {**template, "$patch": "replace"}}}, order="sorted"),
            },
        )
        return _read(created.object())

    def prune(self, owner: Object, revisions: list[Revision], used: set[str]) -> None:
        """Delete the oldest unused revisions above the history limit."""
        idle = [one for one in revisions[:-1] if one.name not in used and one.hash not in used]
        for one in idle[: max(0, len(idle) - owner["spec"].get("revisionHistoryLimit", 10))]:
            self._api.delete(_REVISIONS, owner["metadata"]["namespace"], one.name)


def _copied(annotations: dict[str, str]) -> dict[str, str]:
    return {
        key: value
        for key, value in annotations.items()
        if key != "kubectl.kubernetes.io/last-applied-configuration"
    }  # fmt: skip


def _order(revision: Revision) -> tuple[int, str]:
    return revision.number, revision.name


def _read(obj: Object) -> Revision:
    template = {key: value for key, value in obj["data"]["spec"]["template"].items() if key != "$patch"}
    name: str = obj["metadata"]["name"]
    return Revision(name, obj["metadata"].get("labels", {}).get(HASH, name), obj.get("revision", 0), template)
