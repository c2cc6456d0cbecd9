"""Eviction of pods from devices with a NoExecute taint that their claims do not tolerate, or no longer tolerate.

Slices and DeviceTaintRules taint devices. A change of either, of a claim or of a pod adds the pods with tainted devices
to the queue; the time of their eviction follows from the age of the taints and the tolerations of their claims. The
status of a rule reports the number of pods that still have to be evicted.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from kubestow.api.codec import decode
from kubestow.api.devices import (
    DeviceRequestAllocationResult,
    DeviceTaint,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
)
from kubestow.api.pod import Pod
from kubestow.api.timestamps import parse_time
from kubestow.api.tolerations import tolerates_device
from kubestow.apiserver.controllers.api import condition_of
from kubestow.apiserver.controllers.claims import consumers, is_reserved_for
from kubestow.apiserver.controllers.pods import NODE, Pods
from kubestow.apiserver.controllers.queue import KeysOf
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record
from kubestow.config.features import Features

_CLAIMS, _SLICES = "resourceclaims.resource.k8s.io", "resourceslices.resource.k8s.io"
_RULES = "devicetaintrules.resource.k8s.io"
_COMPONENT, _REASON = "device-taint-eviction-controller", "DeviceTaintManagerEviction"
_EVICTS = "NoExecute"
_RULE = "rule:"
_STATUS_SECONDS = 10.0
"""Minimum time between two status updates of a rule."""

Pool = tuple[str, str]
"""The driver and name of a pool."""
Taints = Mapping[str, tuple[DeviceTaint, ...]]
"""The taints of devices by device name."""
Rules = Mapping[str, DeviceTaintRule]
_NONE: Taints = {}


class _Eviction(NamedTuple):
    """The time at which a pod is evicted, and the rules that cause it."""

    at: float
    rules: tuple[str, ...]


class DeviceTaintEviction:
    """Evicts pods, and updates the status of rules; keys are those of pods, or `rule:` with the name of a rule."""

    def __init__(self, pods: Pods, features: Features) -> None:
        self._pods = pods
        self._api = pods.api
        self._store = pods.api.store
        self._slices: dict[Pool, dict[str, tuple[int, Taints]]] = {}
        """Generation and tainted devices of each slice, by pool."""
        self._tainted: dict[Pool, Taints] = {}
        """Tainted devices of the newest generation of each pool."""
        self._rules: dict[str, DeviceTaintRule] = {}
        """Rules with the effect NoExecute, by name."""
        self._waiting: set[str] = set()
        """UIDs of the pods that will be evicted later."""
        self._evicted: Counter[str] = Counter()
        """Number of pods evicted by each rule."""
        self.sources: dict[str, KeysOf] = {}
        if features.dra_device_taints:
            self.sources = {_SLICES: self._slice_keys, _CLAIMS: self._claim_keys, "pods": self._pod_keys}
            if features.dra_device_taint_rules:
                self.sources = {_RULES: self._rule_keys, **self.sources}

    def _rule_keys(self, change: Change) -> Iterable[Key]:
        record = change.record
        rule = decode(DeviceTaintRule, record.body)
        self._rules.pop(record.name, None)
        if change.type == "DELETED":
            self._evicted.pop(record.name, None)
        else:
            if rule.spec.taint.effect == _EVICTS:
                self._rules[record.name] = rule
            if change.previous is not None and decode(DeviceTaintRule, change.previous.body).spec == rule.spec:
                return
            yield _RULE, record.name
        yield from self._affected(self._consumers(self._store.collection(_CLAIMS).objects.values()))

    def _slice_keys(self, change: Change) -> Iterable[Key]:
        record = change.record
        spec = decode(ResourceSlice, record.body).spec
        pool = (spec.driver, spec.pool.name)
        slices = self._slices.setdefault(pool, {})
        if change.type == "DELETED":
            slices.pop(record.name, None)
        else:
            evicting = {of.name: tuple(one for one in of.taints if one.effect == _EVICTS) for of in spec.devices}
            slices[record.name] = (spec.pool.generation, {name: found for name, found in evicting.items() if found})
        newest = max((generation for generation, _ in slices.values()), default=0)
        now = {name: found for age, of in slices.values() if age == newest for name, found in of.items()}
        if not slices:
            del self._slices[pool]
        if now == self._tainted.get(pool, _NONE):
            return
        self._tainted[pool] = now
        if not now:
            del self._tainted[pool]
        name = f'"{spec.pool.name}"'.encode()
        claims = [one for one in self._store.collection(_CLAIMS).objects.values() if name in one.body]
        yield from self._affected(self._consumers(claims))

    def _claim_keys(self, change: Change) -> Iterable[Key]:
        if not (self._tainted or self._rules):
            return ()
        return self._affected(self._consumers(one for one in (change.record, change.previous) if one is not None))

    def _pod_keys(self, change: Change) -> Iterable[Key]:
        record, before = change.record, change.previous
        if change.type == "DELETED":
            self._waiting.discard(record.uid)
        elif record.fields[NODE] and (before is None or not before.fields[NODE]) and (self._tainted or self._rules):
            return self._affected(((record.namespace, record.name),))
        return ()

    def _consumers(self, claims: Iterable[Record]) -> Iterable[Key]:
        """Return the pods that claims are reserved for."""
        reserved = [one for one in claims if b'"reservedFor":[' in one.body]
        return dict.fromkeys(key for claim in reserved for key in consumers(self._store, claim))

    def _affected(self, pods: Iterable[Key]) -> Iterator[Key]:
        """Yield those of the pods whose eviction is due, pending or cancelled, and the rules that cause it."""
        for key in pods:
            record = self._store.get("pods", *key)
            eviction = self._eviction(record, self._rules) if record is not None else None
            if eviction is not None:
                yield from ((_RULE, name) for name in eviction.rules)
            if eviction is not None or (record is not None and record.uid in self._waiting):
                yield key

    def reconcile(self, key: Key) -> float | None:
        """Evict a pod, or update the status of a rule; return the seconds until the next run, if any."""
        if key[0] == _RULE:
            return self._report(key[1])
        record = self._store.get("pods", *key)
        if record is None:
            return None
        eviction = self._eviction(record, self._rules)
        left = eviction.at - self._api.now() if eviction is not None else None
        if left is not None and left > 0:
            self._waiting.add(record.uid)
            return left
        if eviction is not None:
            self._api.event(_COMPONENT, record.object(), _REASON, "Marking for deletion")
            message = "Device Taint manager: deleting due to NoExecute taint"
            self._pods.disrupt(record, "DeletionByDeviceTaintManager", message)
            self._evicted.update(eviction.rules)
        elif record.uid in self._waiting and not _is_deleting(record):
            self._api.event(_COMPONENT, record.object(), _REASON, "Cancelling deletion")
        self._waiting.discard(record.uid)
        return None

    def _eviction(self, record: Record, rules: Rules) -> _Eviction | None:
        """Return the eviction of a pod due to taints of its devices; None if there is none, or it is being deleted."""
        if b'"resourceClaims":[' not in record.body or not record.fields[NODE] or _is_deleting(record):
            return None
        pod = decode(Pod, record.body)
        made = {one.name: one.resourceClaimName for one in pod.status.resourceClaimStatuses}
        ends: list[float] = []
        causes: dict[str, None] = {}
        for wanted in pod.spec.resourceClaims:
            name = wanted.resourceClaimName or made.get(wanted.name)
            found = self._store.get(_CLAIMS, record.namespace, name) if name else None
            if found is None or not is_reserved_for(found.object().get("status", {}), record.object()):
                continue
            status = decode(ResourceClaim, found.body).status
            for device in status.allocation.devices.results if status.allocation is not None else ():
                for rule, taint in self._taints(device, rules):
                    end = _end(device, taint)
                    if end is not None:
                        ends.append(end)
                        causes[rule] = None
        causes.pop("", None)
        return _Eviction(min(ends), tuple(causes)) if ends else None

    def _taints(self, device: DeviceRequestAllocationResult, rules: Rules) -> Iterator[tuple[str, DeviceTaint]]:
        """Yield the taints of a device, each with the name of its rule; empty for taints of slices."""
        for taint in self._tainted.get((device.driver, device.pool), _NONE).get(device.device, ()):
            yield "", taint
        for name, rule in rules.items():
            if _selects(rule, device.driver, device.pool, device.device):
                yield name, rule.spec.taint

    def _report(self, name: str) -> float | None:
        """Update the condition of a rule with the progress of eviction; return the seconds until the next update."""
        record = self._store.get(_RULES, "", name)
        if record is None:
            return None
        obj, now = record.object(), self._api.now()
        old, generation = condition_of(obj, "EvictionInProgress"), obj["metadata"]["generation"]
        if old is not None and old.get("observedGeneration") == generation:
            left = parse_time(old["lastTransitionTime"]) + _STATUS_SECONDS - now
            if left > 0:
                return left
        rule = decode(DeviceTaintRule, record.body)
        effect = rule.spec.taint.effect
        ends: dict[Key, float] = {}
        if effect in (_EVICTS, "None"):
            taint = replace(rule.spec.taint, effect=_EVICTS)
            rules = {name: replace(rule, spec=replace(rule.spec, taint=taint))}
            for pod in self._store.collection("pods").objects.values():
                eviction = self._eviction(pod, {**self._rules, **rules})
                if eviction is not None and name in eviction.rules:
                    ends[(pod.namespace, pod.name)] = eviction.at
        status, reason, sentences = self._progress(rule, ends)
        if self._evicted[name]:
            sentences.append(f"{_count(self._evicted[name], 'pod')} evicted since starting the controller.")
        new = {
            "type": "EvictionInProgress",
            "status": status,
            "reason": reason,
            "message": " ".join(sentences),
            "observedGeneration": generation,
        }
        if old is None or new.items() - old.items():
            others = [one for one in obj.get("status", {}).get("conditions", ()) if one is not old]
            conditions = [*others, {**new, "lastTransitionTime": self._store.now()}]
            self._api.set_status(_RULES, obj, {**obj.get("status", {}), "conditions": conditions})
        return max(min(ends.values()) - now, 0.0) + _STATUS_SECONDS if ends and effect == _EVICTS else None

    def _progress(self, rule: DeviceTaintRule, pods: Iterable[Key]) -> tuple[str, str, list[str]]:
        """Return status, reason and sentences of the message of a rule's condition, for the pods it would evict."""
        evicted, effect = list(pods), rule.spec.taint.effect
        namespaces = _count(len({namespace for namespace, _ in evicted}), "namespace", "different namespaces")
        if effect == "None":
            published, allocated = self._selected(rule)
            preview = f"{_count(len(evicted), 'pod')} would be evicted in {namespaces} if the effect was NoExecute."
            return "False", "NoEffect", [
                f"{_count(published, 'published device')} selected.",
                f"{_count(allocated, 'allocated device')} selected.",
                preview,
                "This information will not be updated again. Recreate the DeviceTaintRule to trigger an update.",
            ]  # fmt: skip
        if effect != _EVICTS:
            return "False", "OtherEffect", ["Eviction only happens for the NoExecute effect."]
        if evicted:
            need = "pod needs" if len(evicted) == 1 else "pods need"
            return "True", "PodsPendingEviction", [f"{len(evicted)} {need} to be evicted in {namespaces}."]
        return "False", "Completed" if self._evicted[rule.metadata.name] else "NotStarted", []

    def _selected(self, rule: DeviceTaintRule) -> tuple[int, int]:
        """Return the number of devices in slices, and in allocated claims, that a rule selects."""
        published = allocated = 0
        for record in self._store.collection(_SLICES).objects.values():
            spec = decode(ResourceSlice, record.body).spec
            slices = self._slices[(spec.driver, spec.pool.name)]
            if spec.pool.generation == max(generation for generation, _ in slices.values()):
                published += sum(_selects(rule, spec.driver, spec.pool.name, of.name) for of in spec.devices)
        for record in self._store.collection(_CLAIMS).objects.values():
            allocation = decode(ResourceClaim, record.body).status.allocation
            results = allocation.devices.results if allocation is not None else ()
            allocated += sum(_selects(rule, of.driver, of.pool, of.device) for of in results)
        return published, allocated


def _is_deleting(pod: Record) -> bool:
    return b'"deletionTimestamp":"' in pod.body


def _selects(rule: DeviceTaintRule, driver: str, pool: str, device: str) -> bool:
    """Return whether a rule selects a device; without a selector it selects none, with an empty one all."""
    wanted = rule.spec.deviceSelector
    return (
        wanted is not None
        and wanted.driver in (None, driver)
        and wanted.pool in (None, pool)
        and wanted.device in (None, device)
    )


def _end(device: DeviceRequestAllocationResult, taint: DeviceTaint) -> float | None:
    """Return the time until which a taint is tolerated; None for ever. Only tolerations with the effect count."""
    spans = [
        one.tolerationSeconds for one in device.tolerations if one.effect == _EVICTS and tolerates_device(one, taint)
    ]
    if None in spans:
        return None
    since = parse_time(taint.timeAdded) if taint.timeAdded else 0.0
    return since + max(0, min((one for one in spans if one is not None), default=0))


def _count(number: int, one: str, many: str = "") -> str:
    return f"1 {one}" if number == 1 else f"{number} {many or one + 's'}"
