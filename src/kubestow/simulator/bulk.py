"""Bulk pods: pods that only arrive, are bound, run for a given time and end, in numbers of 100,000 and more.

Such a pod needs no controller. It is kept as the object that the scheduler watches, without the JSON that the store,
its rules and a dozen controllers would read and write five times in its life. When anything else affects it (it is
deleted, its node fails or is drained, a budget or a quota counts it) it becomes an ordinary object of the store, in the
state that it would have there, and stays one. Results and times are the same either way; a test compares the two.
"""

from collections.abc import Callable
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from kubestow.api.codec import convert
from kubestow.api.conditions import POD_SCHEDULED, with_condition, with_result
from kubestow.api.pod import Pod, PodCondition
from kubestow.api.timestamps import format_time
from kubestow.apiserver.errors import already_exists
from kubestow.apiserver.kubelets.lifecycles import lifecycle_of
from kubestow.apiserver.kubelets.scripts import PREFIX, Pace, Script
from kubestow.apiserver.kubelets.statuses import Addresses, report_pod
from kubestow.apiserver.objects.intent import Intent
from kubestow.apiserver.objects.writing import new_uid
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.store.records import Change
from kubestow.simulator.plane import Plane

Object = dict[str, Any]
RUN_SECONDS = f"{PREFIX}run-seconds"
_SETTLE_SECONDS = 0.01
"""Seconds that a kubelet takes to see a binding, as in the work queue of the controllers."""
_POD_COUNTERS = ("poddisruptionbudgets.policy", "resourcequotas")
_PLAIN_SPEC = ("initContainers", "activeDeadlineSeconds", "schedulingGates", "resourceClaims", "nodeName")
_PLAIN_ANNOTATIONS = {f"{PREFIX}start-seconds", RUN_SECONDS, f"{PREFIX}stop-seconds"}


class Template:
    """The common manifest of many pods, with the defaults that the store sets."""

    def __init__(self, plane: Plane, pace: Pace, manifest: Object, namespace: str, name: str = "template") -> None:
        """Raise ApiError, with the name in its message, if the API server would reject the manifest."""
        intent = Intent(validation="Strict", dry_run=True)
        named = {**manifest, "metadata": {**manifest.get("metadata", {}), "name": name}}
        self.namespace = namespace
        self.source = manifest
        self.manifest = plane.writer.create(BY_STORAGE["pods"], namespace, named, intent).object()
        self.pod = convert(Pod, self.manifest)
        self.start_seconds = Script(self.manifest, pace).start()
        metadata, spec = self.manifest["metadata"], self.manifest["spec"]
        script_annotations = {key for key in metadata.get("annotations", {}) if key.startswith(PREFIX)}
        self.is_plain = (
            spec.get("restartPolicy") == "Never"
            and not any(spec.get(field) for field in _PLAIN_SPEC)
            and not any(one.get("command") or one.get("args") for one in spec["containers"])
            and not any("persistentVolumeClaim" in one or "ephemeral" in one for one in spec.get("volumes", ()))
            and not metadata.get("ownerReferences")
            and not metadata.get("finalizers")
            and script_annotations <= _PLAIN_ANNOTATIONS
        )


class _BulkPod:
    __slots__ = ("bound", "run_seconds", "template")

    def __init__(self, template: Template, run_seconds: float) -> None:
        self.template = template
        self.run_seconds = run_seconds
        self.bound = 0.0


class BulkPods:
    """The pods of a simulation that are not objects of its store."""

    def __init__(self, plane: Plane, pace: Pace, call_later: Callable[..., Any], *, kubelets: bool) -> None:
        self._plane = plane
        self._pace = pace
        self._call_later = call_later
        self._kubelets = kubelets
        self._pods: dict[str, _BulkPod] = {}
        self._on_node: dict[str, dict[str, None]] = {}
        plane.store.collection("nodes").subscribers.append(self._on_node_change)
        for storage in _POD_COUNTERS:
            plane.store.collection(storage).subscribers.append(self._on_counting_change)

    def create(self, template: Template, name: str, run_seconds: float) -> None:
        """Create a pod; raises ApiError if the API server would reject it."""
        plane = self._plane
        counted = any(template.namespace in plane.store.collection(one).by_namespace for one in _POD_COUNTERS)
        if not template.is_plain or counted or not self._kubelets:
            self._create_in_store(template, name, run_seconds)
            return
        key = f"{template.namespace}/{name}"
        if key in self._pods or plane.store.get("pods", template.namespace, name) is not None:
            raise already_exists("", "pods", name)
        meta = replace(
            template.pod.metadata,
            name=name,
            uid=new_uid(plane.store.random),
            creationTimestamp=plane.store.now(),
            resourceVersion=self._next_version(),
        )
        self._pods[key] = _BulkPod(template, run_seconds)
        plane.publish((Pod, key), replace(template.pod, metadata=meta), "Pending")

    def _create_in_store(self, template: Template, name: str, run_seconds: float) -> None:
        metadata = dict(template.source.get("metadata", {}))
        annotations = {**metadata.get("annotations", {}), RUN_SECONDS: repr(run_seconds)}
        pod = {**template.source, "metadata": {**metadata, "name": name, "annotations": annotations}}
        self._plane.writer.create(BY_STORAGE["pods"], template.namespace, pod, Intent(validation="Strict"))

    def _next_version(self) -> str:
        store = self._plane.store
        store.rv += 1
        return str(store.rv)

    def __contains__(self, pod: Pod) -> bool:
        """Return whether a pod, by name and UID, is a bulk pod."""
        if pod.key not in self._pods:
            return False
        current: Pod = self._plane.current[Pod, pod.key]
        return current.metadata.uid == pod.metadata.uid

    def bind(self, key: str, node: str) -> None:
        """Bind a pod to a node and schedule its end."""
        plane, one, old = self._plane, self._pods[key], self._plane.current[Pod, key]
        clock = plane.store.clock.now()
        now = format_time(clock)
        one.bound = clock
        scheduled = PodCondition(type=POD_SCHEDULED, status="True", lastTransitionTime=now)
        conditions = with_condition(old.status.conditions, scheduled)
        status = replace(old.status, nominatedNodeName="", conditions=conditions, startTime=now)
        meta = replace(old.metadata, resourceVersion=self._next_version())
        new = replace(old, metadata=meta, spec=replace(old.spec, nodeName=node), status=status)
        self._on_node.setdefault(node, {})[key] = None
        lifetime = _SETTLE_SECONDS + one.template.start_seconds + one.run_seconds
        self._call_later(lifetime, self._end, key, old.metadata.uid)
        plane.publish((Pod, key), new, "Pending")

    @property
    def has_running(self) -> bool:
        """Whether bound bulk pods have not ended yet."""
        return bool(self._on_node)

    def _end(self, key: str, uid: str) -> None:
        pod = self._plane.current.get((Pod, key))
        if key in self._pods and pod is not None and pod.metadata.uid == uid:
            self._discard(key, pod.spec.nodeName)
            self._plane.publish((Pod, key), None, "Succeeded")

    def _discard(self, key: str, node: str) -> None:
        del self._pods[key]
        here = self._on_node.get(node)
        if here is not None:
            del here[key]
            if not here:
                del self._on_node[node]

    def set_status(self, key: str, condition: PodCondition | None, nominated_node: str | None) -> None:
        """Update the condition and the nominated node of a pod that the scheduler did not place."""
        old: Pod = self._plane.current[Pod, key]
        status = with_result(old.status, condition, nominated_node)
        if status != old.status:
            meta = replace(old.metadata, resourceVersion=self._next_version())
            self._plane.publish((Pod, key), replace(old, metadata=meta, status=status), "Pending")

    # Conversion to objects of the store

    def _on_node_change(self, change: Change) -> None:
        name, body = change.record.name, change.record.body
        concerns_pods = change.type == "DELETED" or b'"NoExecute"' in body or b'"kubestow.dev/' in body
        if concerns_pods and name in self._on_node:
            self.put_in_store(self._on_node[name])

    def _on_counting_change(self, change: Change) -> None:
        if change.type == "ADDED":
            prefix = f"{change.record.namespace}/"
            self.put_in_store([key for key in self._pods if key.startswith(prefix)])

    def put_in_store(self, keys: Any = None) -> None:
        """Convert the pods with these keys, or all pods, to ordinary objects of the store."""
        for key in list(self._pods if keys is None else keys):
            if key in self._pods:
                self._put_in_store(key)

    def _put_in_store(self, key: str) -> None:
        one, pod = self._pods[key], self._plane.current[Pod, key]
        self._discard(key, pod.spec.nodeName)
        manifest, meta = one.template.manifest, pod.metadata
        metadata = {**manifest["metadata"], "name": meta.name, "uid": meta.uid}
        metadata["creationTimestamp"] = meta.creationTimestamp
        metadata["annotations"] = {**metadata.get("annotations", {}), RUN_SECONDS: repr(one.run_seconds)}
        status = {**manifest["status"], "conditions": [to_builtins(one) for one in pod.status.conditions]}
        full: Object = {**manifest, "metadata": metadata, "spec": dict(manifest["spec"]), "status": status}
        if pod.status.nominatedNodeName:
            status["nominatedNodeName"] = pod.status.nominatedNodeName
        if pod.spec.nodeName:
            full["spec"]["nodeName"] = pod.spec.nodeName
            life = lifecycle_of(full, Script(full, self._pace), one.bound + _SETTLE_SECONDS)
            now = self._plane.store.clock.now()
            life.advance(now)
            report_pod(full, life, Addresses(), now)
        self._plane.store.put("pods", full)

    def keys_on(self, node: str) -> list[str]:
        """Return the keys of the bulk pods on a node."""
        return list(self._on_node.get(node, ()))
