"""The control plane of a simulation: store, rules, controllers and stand-in kubelets of the embedded one, in memory.

Nothing is served or journaled, no events are recorded, and kubelets send no heartbeats, so idle time costs nothing.
`current` holds the decoded objects that the scheduler watches; listeners are called for each change of them.
"""

import random
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from kubestow.api.codec import decode
from kubestow.api.custom_kinds import kinds_by_name, resource_of
from kubestow.apiserver import bootstrap
from kubestow.apiserver.admission.chain import Admission
from kubestow.apiserver.controllers import standard
from kubestow.apiserver.controllers.api import Api
from kubestow.apiserver.controllers.pods import DONE, PHASE, Pods
from kubestow.apiserver.controllers.queue import Controller, Controllers
from kubestow.apiserver.custom.resources import resources_of
from kubestow.apiserver.driver import Driver
from kubestow.apiserver.kubelets.fleet import Fleet
from kubestow.apiserver.objects.removal import Remover
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.store.records import Change, Record
from kubestow.apiserver.store.store import Store
from kubestow.client.resources import PODS, WATCHED, key_of, watched_by_gates
from kubestow.simulator.in_memory.virtual_loop import VirtualLoop
from kubestow.simulator.settings import Settings

ObjectId = tuple[type, str]
"""Kind, and namespace/name."""
Listener = Callable[[ObjectId, Any, Any, str], None]
"""`(object, old, new, phase)`. `new` is None when the scheduler no longer watches it; `phase` is that of a pod."""
_RETAINED_CHANGES = 100
_ANYTHING = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}


class QuietApi(Api):
    """The API of the controllers; it discards their events."""

    def event(self, component: str, obj: dict[str, Any], reason: str, message: str, type_: str = "Normal") -> None:
        del component, obj, reason, message, type_


class Plane:
    """The objects of a simulation, and the controllers and kubelets that act on them."""

    def __init__(
        self, loop: VirtualLoop, settings: Settings, of: "Plane | None" = None, *, kinds: Iterable[type] = ()
    ) -> None:
        """`of`: the control plane to copy; `kinds` are those that plugins declare."""
        self.rng = random.Random(settings.seed)
        if of is None:
            self.store = Store(clock=loop.clock, random=self.rng.randbytes, retain=_RETAINED_CHANGES)
        else:
            self.rng.setstate(of.rng.getstate())
            self.store = of.store.fork(loop.clock, self.rng.randbytes)
        # Without a controller that removes the taint of a new node, no taint is added.
        removes_taints = standard.is_chosen("node-lifecycle-controller", settings.controllers) and settings.kubelets
        disabled = () if removes_taints else ("TaintNodesByCondition",)
        admission = Admission(self.store, disable=disabled, features=settings.features)
        self.writer, self.remover = Writer(self.store, admission), Remover(self.store)
        self.api = QuietApi(self.writer, self.remover)
        self.current: dict[ObjectId, Any] = {}
        self.listeners: list[Listener] = []
        self.pods: Pods
        self.controllers: Controllers
        self._settings = settings
        self._driver: Driver | None = None
        bootstrap.add_initial_objects(self.writer)
        self.declared = kinds_by_name(kinds)
        """The kinds that plugins declare, by apiVersion and kind."""
        for name, classes in self.declared.items():
            self._serve(name, classes[0])
        self._watch({} if of is None else of.current)

    def _serve(self, name: tuple[str, str], kind: type) -> None:
        """Serve a declared kind without a schema, unless it is built in."""
        registry = self.store.registry
        if name in registry.by_kind:
            return
        declared = resource_of(kind)
        assert declared is not None
        (resource,) = resources_of(
            {
                "metadata": {"name": declared.name},
                "spec": {
                    "group": declared.group,
                    "names": {"plural": declared.plural, "kind": declared.kind},
                    "scope": "Namespaced" if declared.is_namespaced else "Cluster",
                    "versions": [{"name": declared.version, "served": True, "storage": True, "schema": _ANYTHING}],
                },
            }
        )
        self.store.add(resource)
        registry.replace((), (resource,))

    def _watch(self, known: Mapping[ObjectId, Any]) -> None:
        # Pods come last, after the objects that they refer to.
        gated = watched_by_gates(self._settings.features)
        builtin = [(one.name, one.kind) for one in (*WATCHED, *gated) if one is not PODS]
        by_kind = self.store.registry.by_kind
        declared = [(by_kind[name].storage, kind) for name, classes in self.declared.items() for kind in classes]
        for storage, kind in (*builtin, *declared, (PODS.name, PODS.kind)):
            collection = self.store.collection(storage)
            for record in collection.objects.values():
                if record.storage == "pods" and record.fields[PHASE] in DONE:
                    continue
                object_id = (kind, key_of(record))
                if not self._selects(kind, record):
                    continue
                seen = known.get(object_id)
                same = seen is not None and seen.metadata.resourceVersion == str(record.rv)
                self.current[object_id] = seen if same else decode(kind, record.body)
            collection.subscribers.append(partial(self._changed, kind))

    def _changed(self, kind: type, change: Change) -> None:
        record = change.record
        phase = record.fields[PHASE] if record.storage == "pods" else ""
        is_removed = change.type == "DELETED" or phase in DONE
        if not self._selects(kind, record):
            return
        self.publish((kind, key_of(record)), None if is_removed else decode(kind, record.body), phase)

    @staticmethod
    def _selects(kind: type, record: Record) -> bool:
        declared = resource_of(kind)
        return declared is None or declared.selects(record)

    def publish(self, object_id: ObjectId, new: Any, phase: str = "") -> None:
        """Store the new state of a watched object, None if it is gone, and call the listeners."""
        old = self.current.pop(object_id, None) if new is None else self.current.get(object_id)
        if new is not None:
            self.current[object_id] = new
        elif old is None:
            return
        for listener in self.listeners:
            listener(object_id, old, new, phase)

    async def start(self) -> None:
        """Reconcile all objects, and start controllers and kubelets."""
        self.pods = Pods(self.api)
        controllers: list[Controller] = standard.controllers(
            self.pods, "", self._settings.controllers, self._settings.features
        )
        if self._settings.kubelets:
            controllers.append(Fleet(self.pods, self._settings.pace, heartbeats=False))
        self.controllers = Controllers(self.store, controllers)
        self._driver = Driver(self.controllers, self.store.clock)

    def stop(self) -> None:
        """Stop controllers and kubelets."""
        if self._driver is not None:
            self._driver.close()
