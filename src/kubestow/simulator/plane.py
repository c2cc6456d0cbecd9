"""The control plane of a simulation: the embedded one's store, rules, controllers and stand-in kubelets, in memory.

Nothing is served, journaled or said in events, and kubelets send no heartbeats, so time in which nothing happens costs
nothing. `current` has what the scheduler watches, decoded, as it is now; whoever listens is told of every change of it.
"""

import random
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from kubestow.api.codec import decode
from kubestow.apiserver import bootstrap
from kubestow.apiserver.admission.chain import Admission
from kubestow.apiserver.controllers import standard
from kubestow.apiserver.controllers.api import Api
from kubestow.apiserver.controllers.pods import DONE, PHASE, Pods
from kubestow.apiserver.controllers.queue import Controller, Controllers
from kubestow.apiserver.driver import Driver
from kubestow.apiserver.kubelets.fleet import Fleet
from kubestow.apiserver.objects.removal import Remover
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.store.records import Change
from kubestow.apiserver.store.store import Store
from kubestow.client.resources import POD_GROUPS, PODS, WATCHED, key_of
from kubestow.simulator.in_memory.virtual_loop import VirtualLoop
from kubestow.simulator.settings import Settings

Which = tuple[type, str]
"""A kind, and namespace/name."""
Listener = Callable[[Which, Any, Any, str], None]
"""Told which object changed, what it was, what it is (None: gone for the scheduler), and, of a pod, its phase."""
_RETAINED_CHANGES = 100


class QuietApi(Api):
    """What controllers see and do; what they would tell people is dropped."""

    def event(self, component: str, obj: dict[str, Any], reason: str, message: str, type_: str = "Normal") -> None:
        del component, obj, reason, message, type_


class Plane:
    """Objects, and those who act on them as time passes."""

    def __init__(self, loop: VirtualLoop, settings: Settings, of: "Plane | None" = None) -> None:
        """`of`: the control plane that this one is a copy of."""
        self.chance = random.Random(settings.seed)
        if of is None:
            self.store = Store(clock=loop.clock, random=self.chance.randbytes, retain=_RETAINED_CHANGES)
        else:
            self.chance.setstate(of.chance.getstate())
            self.store = of.store.fork(loop.clock, self.chance.randbytes)
        # Where nobody would take the taint of a new node off again, none is put on.
        watched = standard.is_chosen("node-lifecycle-controller", settings.controllers) and settings.kubelets
        disabled = () if watched else ("TaintNodesByCondition",)
        admission = Admission(self.store, disable=disabled, features=settings.features)
        self.writer, self.remover = Writer(self.store, admission), Remover(self.store)
        self.api = QuietApi(self.writer, self.remover)
        self.current: dict[Which, Any] = {}
        self.listeners: list[Listener] = []
        self.pods: Pods
        self.controllers: Controllers
        self._settings = settings
        self._driver: Driver | None = None
        bootstrap.add_initial_objects(self.writer)
        self._watch({} if of is None else of.current)

    def _watch(self, known: Mapping[Which, Any]) -> None:
        # Pods come last: what they refer to is known then.
        groups = (POD_GROUPS,) if self._settings.features.generic_workload else ()
        for resource in (*(one for one in WATCHED if one is not PODS), *groups, PODS):
            collection, kind = self.store.collection(resource.name), resource.kind
            for record in collection.objects.values():
                if record.storage == "pods" and record.fields[PHASE] in DONE:
                    continue
                which = (kind, key_of(record))
                seen = known.get(which)
                same = seen is not None and seen.metadata.resourceVersion == str(record.rv)
                self.current[which] = seen if same else decode(kind, record.body)
            collection.subscribers.append(partial(self._changed, kind))

    def _changed(self, kind: type, change: Change) -> None:
        record = change.record
        phase = record.fields[PHASE] if record.storage == "pods" else ""
        gone = change.type == "DELETED" or phase in DONE
        self.publish((kind, key_of(record)), None if gone else decode(kind, record.body), phase)

    def publish(self, which: Which, new: Any, phase: str = "") -> None:
        """An object that the scheduler watches is now this."""
        old = self.current.pop(which, None) if new is None else self.current.get(which)
        if new is not None:
            self.current[which] = new
        elif old is None:
            return
        for tell in self.listeners:
            tell(which, old, new, phase)

    async def start(self) -> None:
        """Have controllers and kubelets look at what is there, and act from now on."""
        self.pods = Pods(self.api)
        acting: list[Controller] = standard.controllers(
            self.pods, "", self._settings.controllers, self._settings.features
        )
        if self._settings.kubelets:
            acting.append(Fleet(self.pods, self._settings.pace, heartbeats=False))
        self.controllers = Controllers(self.store, acting)
        self._driver = Driver(self.controllers, self.store.clock)

    def stop(self) -> None:
        """No more visits."""
        if self._driver is not None:
            self._driver.close()
