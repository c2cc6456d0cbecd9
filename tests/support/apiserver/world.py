"""A cluster in virtual time: store, controllers and simulated kubelets, without sockets and event loop."""

import random
from collections.abc import Callable, Iterable
from typing import Any

from kubestow.apiserver import Pace, bootstrap
from kubestow.apiserver.admission.chain import Admission
from kubestow.apiserver.controllers import standard
from kubestow.apiserver.controllers.api import Api
from kubestow.apiserver.controllers.pods import NODE, Pods, facts_of
from kubestow.apiserver.controllers.queue import Controller, Controllers, KeysOf, own_key
from kubestow.apiserver.kubelets import description
from kubestow.apiserver.kubelets.fleet import Fleet
from kubestow.apiserver.objects.binding import bind
from kubestow.apiserver.objects.intent import Intent, internal
from kubestow.apiserver.objects.removal import DeleteOptions, Remover
from kubestow.apiserver.objects.writing import Writer
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.store.records import Change
from kubestow.apiserver.store.sqlite import SqliteJournal
from kubestow.apiserver.store.store import Store
from kubestow.config import Features

Object = dict[str, Any]
START = 1_767_225_600.0
"""2026-01-01T00:00:00Z, a Thursday."""
LABELS = {"app": "w"}
PACE = Pace(start=1, run=10, stop=1)


class Clock:
    """A clock that stands still until a test advances it."""

    def __init__(self) -> None:
        self.time = START

    def now(self) -> float:
        """Return the time in seconds since the epoch."""
        return self.time


class Scheduler:
    """Binds pods to the node of their affinity, or to the nodes in turn."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._turn = 0
        self.sources: dict[str, KeysOf] = {
            "pods": lambda change: own_key(change) if not change.record.fields[NODE] else ()
        }

    def reconcile(self, key: tuple[str, str]) -> float | None:
        """Bind a pod."""
        record = self._store.get("pods", *key)
        nodes = [one.name for one in self._store.collection("nodes").objects.values() if b"NoSchedule" not in one.body]
        if (
            record is None
            or record.fields[NODE]
            or b'"deletionTimestamp"' in record.body
            or b"schedulingGates" in record.body
        ):
            return None
        target = facts_of(record).target
        if not target and nodes:
            self._turn += 1
            target = nodes[self._turn % len(nodes)]
        if target:
            bind(self._store, *key, {"target": {"name": target}}, internal())
        return None


class World:
    """A cluster whose time advances only when a test runs it."""

    def __init__(
        self,
        nodes: int = 3,
        *,
        pace: Pace = PACE,
        wanted: str = "*",
        kubelets: bool = True,
        schedules: bool = True,
        seed: int = 1,
        gates: str = "",
        journal: SqliteJournal | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.clock = clock or Clock()
        self.store = Store(journal, clock=self.clock, random=random.Random(seed).randbytes)
        features = Features.parse(gates)
        protects = ["PodGroupProtection"] if features.generic_workload else []
        self.writer, self.remover = (
            Writer(self.store, Admission(self.store, protects, features=features)),
            Remover(self.store),
        )
        bootstrap.add_initial_objects(self.writer)
        bootstrap.add_nodes(self.writer, description.default_nodes(nodes))
        pods = Pods(Api(self.writer, self.remover))
        controllers: list[Controller] = standard.controllers(pods, "authority", wanted, features)
        controllers += [Scheduler(self.store)] if schedules else []
        controllers += [Fleet(pods, pace)] if kubelets else []
        self.controllers = Controllers(self.store, controllers)
        self.runs = 0

    def run(self, seconds: float = 5.0) -> None:
        """Advance the time, and reconcile everything that is due."""
        end = self.clock.time + seconds
        while (due := self.controllers.next_due()) is not None and due <= end:
            self.clock.time = max(self.clock.time, due)
            self.controllers.reconcile_next()
            self.runs += 1
        self.clock.time = end

    def until(self, found: Callable[[], Any], limit: float = 3600.0) -> Any:
        """Advance the time until a function returns a true result; return it."""
        end = self.clock.time + limit
        while not (result := found()):
            due = self.controllers.next_due()
            assert due is not None, "it never happened"
            assert due <= end, "it did not happen in time"
            self.clock.time = max(self.clock.time, due)
            self.controllers.reconcile_next()
        return result

    # Objects

    def create(self, storage: str, name: str, spec: Object | None = None, **more: Any) -> Object:
        """Create an object as a user."""
        resource = BY_STORAGE[storage]
        metadata = {"name": name, **more.pop("metadata", {})}
        namespace = more.pop("namespace", "default") if resource.namespaced else ""
        body = {"metadata": metadata, **({"spec": spec} if spec is not None else {}), **more}
        return self.writer.create(resource, namespace, body, Intent(validation="Strict")).object()

    def get(self, storage: str, name: str, namespace: str | None = None) -> Object:
        """Return an object, which must exist."""
        found = self.find(storage, name, namespace)
        assert found is not None, f"{storage} {name} is not there"
        return found

    def find(self, storage: str, name: str, namespace: str | None = None) -> Object | None:
        """Return an object; None if it does not exist."""
        where = namespace if namespace is not None else "default" if BY_STORAGE[storage].namespaced else ""
        record = self.store.get(storage, where, name)
        return record.object() if record is not None else None

    def all(self, storage: str, namespace: str = "default") -> list[Object]:
        """Return all objects of a namespace, oldest first."""
        where = namespace if BY_STORAGE[storage].namespaced else ""
        return [record.object() for record in self.store.collection(storage).by_namespace.get(where, {}).values()]

    def update(
        self, storage: str, name: str, alter: Callable[[Object], Any], sub: str = "", namespace: str = "default"
    ) -> Object:
        """Change an object as a user."""

        def change(current: Object) -> Object:
            alter(current)
            return current

        where = namespace if BY_STORAGE[storage].namespaced else ""
        return self.writer.update(BY_STORAGE[storage], where, name, change, Intent(), sub=sub).object()

    def set(self, storage: str, name: str, **fields: Any) -> Object:
        """Change fields of an object's spec."""
        return self.update(storage, name, lambda one: one["spec"].update(fields))

    def delete(self, storage: str, name: str, **options: Any) -> None:
        """Delete an object as a user."""
        where = "default" if BY_STORAGE[storage].namespaced else ""
        self.remover.delete(BY_STORAGE[storage], where, name, DeleteOptions(**options), Intent())

    # What tests ask

    def pods(self, **labels: str) -> list[Object]:
        """Return the pods that are not being deleted, oldest first."""
        found = [one for one in self.all("pods") if "deletionTimestamp" not in one["metadata"]]
        return [one for one in found if labels.items() <= one["metadata"].get("labels", {}).items()]

    def phases(self) -> list[str]:
        """Return the sorted phases of all pods."""
        return sorted(one["status"]["phase"] for one in self.all("pods"))

    def status(self, storage: str, name: str) -> Object:
        """Return the status of an object."""
        status: Object = self.get(storage, name).get("status", {})
        return status

    def condition(self, storage: str, name: str, type_: str) -> Object:
        """Return a condition of an object; empty if there is none."""
        found: Iterable[Object] = self.status(storage, name).get("conditions", ())
        return next((one for one in found if one["type"] == type_), {})

    def events(self, kind: str = "") -> list[tuple[str, str]]:
        """Return reason and message of the events about a kind, oldest first."""
        found = [one for one in self.all("events") if kind in ("", one["involvedObject"]["kind"])]
        return [(one["reason"], one["message"]) for one in found]

    def watch(self, storage: str, callback: Callable[[Change], None]) -> None:
        """Call a function for every change."""
        self.store.collection(storage).subscribers.append(callback)


def template(image: str = "i:1", annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    """Return a pod template; annotations are those of simulated kubelets, without their prefix."""
    prefixed = {f"kubestow.dev/{key}": value for key, value in (annotations or {}).items()}
    return {
        "metadata": {"labels": dict(LABELS), **({"annotations": prefixed} if prefixed else {})},
        "spec": {"containers": [{"name": "c", "image": image}], **spec},
    }


def workload(image: str = "i:1", annotations: dict[str, str] | None = None, **spec: Any) -> Object:
    """Return the spec of a workload that selects its pods."""
    return {"selector": {"matchLabels": dict(LABELS)}, "template": template(image, annotations), **spec}
