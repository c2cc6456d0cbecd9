"""Pods as controllers use them: facts computed once for each version, creation from templates, and deletion."""

from collections.abc import Callable
from typing import NamedTuple

from kubestow.api.timestamps import parse_time
from kubestow.apiserver.controllers.api import Api, Object, condition_of, reference
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.rules.pods import set_condition
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record

_FIELDS = BY_STORAGE["pods"].selectable_fields
PHASE, NODE = _FIELDS.index("status.phase"), _FIELDS.index("spec.nodeName")
DONE = ("Succeeded", "Failed")
_COST = "controller.kubernetes.io/pod-deletion-cost"


class Facts(NamedTuple):
    """The facts about one version of a pod."""

    record: Record
    phase: str
    node: str
    deleting: bool
    ready: bool
    ready_since: float
    created: float
    deletion_cost: int
    restarts: int
    target: str
    """The node it is bound to, or the only node that its affinity permits; else empty."""

    @property
    def name(self) -> str:
        """The pod's name."""
        return self.record.name

    @property
    def active(self) -> bool:
        """Whether the pod is neither finished nor being deleted."""
        return not self.deleting and self.phase not in DONE

    def available_in(self, min_ready_seconds: int, now: float) -> float:
        """Return the seconds until the pod is available: 0 if it is, infinity if it is not ready."""
        if not self.ready:
            return float("inf")
        return max(0.0, self.ready_since + min_ready_seconds - now) if min_ready_seconds else 0.0


def facts_of(record: Record) -> Facts:
    """Compute the facts about a pod."""
    pod = record.object()
    metadata, status = pod["metadata"], pod.get("status", {})
    ready = condition_of(pod, "Ready")
    is_ready = ready is not None and ready.get("status") == "True" and status.get("phase") == "Running"
    cost = metadata.get("annotations", {}).get(_COST, "0")
    return Facts(
        record,
        record.fields[PHASE],
        record.fields[NODE],
        "deletionTimestamp" in metadata,
        is_ready,
        parse_time(ready["lastTransitionTime"]) if is_ready and ready and ready.get("lastTransitionTime") else 0.0,
        parse_time(metadata["creationTimestamp"]),
        int(cost) if cost.removeprefix("-").isdecimal() and len(cost) < 12 else 0,
        sum(
            one.get("restartCount", 0)
            for kind in ("containerStatuses", "initContainerStatuses")
            for one in status.get(kind, ())
        ),
        record.fields[NODE] or _target(pod["spec"]),
    )


def _target(spec: Object) -> str:
    required = (
        spec.get("affinity", {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    )
    for term in required.get("nodeSelectorTerms", ()):
        for one in term.get("matchFields", ()):
            if one["key"] == "metadata.name" and len(one.get("values", ())) == 1:
                return str(one["values"][0])
    return ""


def _no_change(_: Object) -> None:
    """Keep a pod as in its template."""


class Pods:
    """An index of pods by node, with cached facts about each."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self._known: dict[str, Facts] = {}
        self._on_node: dict[str, dict[Key, None]] = {}
        collection = api.store.collection("pods")
        collection.subscribers.append(self._track)
        collection.replay(self._track)

    def _track(self, change: Change) -> None:
        record = change.record
        node, key = record.fields[NODE], (record.namespace, record.name)
        if change.type == "DELETED":
            self._known.pop(record.uid, None)
            here = self._on_node.get(node)
            if here is not None:
                here.pop(key, None)
                if not here:
                    del self._on_node[node]
        elif node:
            self._on_node.setdefault(node, {})[key] = None

    def on_node(self, node: str) -> list[Record]:
        """Return the pods bound to a node, in the order in which they were bound."""
        found = [self.api.store.get("pods", *key) for key in self._on_node.get(node, ())]
        return [record for record in found if record is not None]

    def facts(self, record: Record) -> Facts:
        """Return the facts about a pod, computed once for each version."""
        known = self._known.get(record.uid)
        if known is None or known.record.rv != record.rv:
            known = self._known[record.uid] = facts_of(record)
        return known

    def owned_by(self, uid: str) -> list[Facts]:
        """Return the pods that an object controls, oldest first."""
        return [self.facts(record) for record in self.api.owned(uid, "pods")]

    def build(self, owner: Object, template: Object, prefix: str, alter: Callable[[Object], None]) -> Object:
        """Return a new pod made from a template, owned by `owner`; `alter` may change it."""
        metadata = template.get("metadata", {})
        pod: Object = {
            "metadata": {
                "generateName": prefix,
                "labels": dict(metadata.get("labels", {})),
                "annotations": dict(metadata.get("annotations", {})),
                "finalizers": list(metadata.get("finalizers", ())),
                "ownerReferences": [reference(owner)],
            },
            "spec": dict(template.get("spec", {})),
        }
        alter(pod)
        pod["metadata"] = {key: value for key, value in pod["metadata"].items() if value}
        return pod

    def create(
        self, component: str, owner: Object, template: Object, prefix: str, alter: Callable[[Object], None] = _no_change
    ) -> Record:
        """Create a pod of a template for an owner. Raises ApiError if it is rejected."""
        namespace = owner["metadata"]["namespace"]
        try:
            created = self.api.create("pods", namespace, self.build(owner, template, prefix, alter))
        except ApiError as error:
            self.api.event(component, owner, "FailedCreate", f"Error creating: {error.message}", "Warning")
            raise
        self.api.event(component, owner, "SuccessfulCreate", f"Created pod: {created.name}")
        return created

    def disrupt(self, record: Record, reason: str, message: str) -> None:
        """Delete a pod, with the reason in its condition DisruptionTarget."""

        def mark(pod: Object) -> None:
            set_condition(pod, "DisruptionTarget", "True", self.api.store.now(), reason=reason, message=message)

        self.api.update("pods", record.namespace, record.name, mark, sub="status")
        self.api.delete("pods", record.namespace, record.name, uid=record.uid)

    def delete(self, component: str, owner: Object, facts: Facts) -> None:
        """Delete a pod of an owner gracefully, and record an event."""
        self.api.delete("pods", facts.record.namespace, facts.name, uid=facts.record.uid)
        self.api.event(component, owner, "SuccessfulDelete", f"Deleted pod: {facts.name}")
