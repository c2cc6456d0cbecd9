"""Objects with missing, null or odd parts: stored or rejected, but never a failure of the server or its controllers."""

import contextlib
import copy
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kubestow.apiserver.auth.policy import Attempt
from kubestow.apiserver.auth.rbac import Rbac
from kubestow.apiserver.errors import ApiError
from kubestow.apiserver.objects.intent import Intent, User
from kubestow.apiserver.objects.removal import DeleteOptions
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.apiserver.rest import views
from kubestow.apiserver.store.collection import NAMESPACE
from kubestow.apiserver.store.layout import State
from kubestow.apiserver.store.records import Change, Row
from kubestow.apiserver.store.store import Store
from support.apiserver.data_files import rewritten
from support.apiserver.running import Running
from support.apiserver.seeds import OTHER_NAMES, SEEDS
from support.apiserver.world import World

QUOTAS = "/api/v1/namespaces/default/resourcequotas"
ODD: tuple[Any, ...] = (None, {}, [], "", 5)
PARTS = ("spec", "status", "metadata")
POD = {"containers": [{"name": "c", "image": "i"}], "runtimeClassName": "odd-0", "priorityClassName": "odd-0"}
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
JOB = {"template": {"spec": {**POD, "restartPolicy": "Never"}}}
METADATA: dict[str, Any] = {
    "labels": {"a": "b"},
    "annotations": {"a": "b"},
    "finalizers": ["example.com/f"],
    "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}],
    "managedFields": [{"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsV1": {"f:spec": {}}}],
}


@pytest.fixture
def failures() -> Iterator[list[str]]:
    """Collect the errors that the server logs."""
    found: list[str] = []

    class Collecting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            found.append(str(record.msg))

    handler, logger = Collecting(logging.ERROR), logging.getLogger("kubestow.apiserver")
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)


def _paths(value: Any, depth: int) -> Iterator[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (key,)
        if depth > 1:
            yield from ((key, *rest) for rest in _paths(inner, depth - 1))


def _variants(whole: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield objects without one of their parts, or with an odd value in its place."""
    for path in dict.fromkeys([*((part,) for part in PARTS), *_paths(whole, 5)]):
        for odd in ("missing", *ODD):
            changed = copy.deepcopy(whole)
            inner: Any = changed
            for key in path[:-1]:
                inner = inner[key]
            if odd != "missing":
                inner[path[-1]] = copy.deepcopy(odd)
            elif isinstance(inner, list) or path[-1] in inner:
                del inner[path[-1]]
            yield changed


class _Replayed:
    """A journal with the objects of another store."""

    def __init__(self, store: Store) -> None:
        self._bodies = sorted(
            (record.rv, storage, record.body)
            for storage, collection in store.collections.items()
            for record in collection.objects.values()
        )

    floors: ClassVar[dict[str, int]] = {}
    state = State()

    def rows(self) -> Iterator[Row]:
        return (Row(rv, storage, "ADDED", body) for rv, storage, body in self._bodies)

    def start(self, *_: Any) -> None:
        """Ignore the callbacks: nothing is written."""

    def write(self, row: Row) -> None:
        """Ignore a row."""


@pytest.mark.parametrize("storage", SEEDS)
def test_no_part_of_an_object_is_taken_for_granted(storage: str, failures: list[str]) -> None:
    """Odd objects and states are stored or rejected; controllers, tables and a start on the stored data work."""
    world, resource = World(nodes=1), BY_STORAGE[storage]
    namespace = "default" if resource.namespaced else ""
    stored = 0
    whole = copy.deepcopy(SEEDS[storage]) | {"metadata": copy.deepcopy(METADATA)}
    for number, changed in enumerate(_variants(whole)):
        name = OTHER_NAMES.get(storage, f"odd-{number}")
        metadata = changed["metadata"] if isinstance(changed.get("metadata"), dict) else {}
        changed["metadata"] = {**metadata, "name": name}
        status = copy.deepcopy(changed)
        try:
            world.writer.create(resource, namespace, changed, Intent())
            stored += 1
            if resource.has_status and "status" in status:
                world.writer.update(resource, namespace, name, lambda _, new=status: new, Intent(), sub="status")  # type: ignore[misc]
        except ApiError as error:
            failures += [error.message] if error.code >= 500 else []
        if storage in OTHER_NAMES and world.store.get(storage, namespace, name):
            world.remover.delete(resource, namespace, name, DeleteOptions(), Intent())
    assert stored > 0
    for other, spec in (("configmaps", None), ("pods", POD), ("persistentvolumeclaims", CLAIM), ("jobs.batch", JOB)):
        with contextlib.suppress(ApiError):
            world.create(other, "sound", spec)
    assert not Rbac(world.store).allowed(User("jane", ("devs",)), Attempt("list", "secrets", namespace="default"))
    world.run(3)
    for record in world.store.collection(storage).ordered(None):
        views.single(resource, record, views.TABLE)
    again = World(nodes=1, journal=_Replayed(world.store), clock=world.clock)  # type: ignore[arg-type]
    again.run(3)
    for record in again.store.collection(storage).ordered(None):
        if record.name.startswith("odd") or storage in OTHER_NAMES:
            again.remover.delete(resource, record.namespace, record.name, DeleteOptions(), Intent())
    assert failures == []


def test_a_quota_without_a_spec_does_not_prevent_a_start(
    start: Callable[..., Running], tmp_path: Path, failures: list[str]
) -> None:
    """It is created, read and deleted; one that an earlier version stored without a spec gets an empty one."""
    first = start(data_dir=tmp_path, controllers=True)
    for name in ("new", "old"):
        first.client().create(QUOTAS, {"metadata": {"name": name}})
    first.stop()
    with rewritten(tmp_path) as database:
        found = database.execute("SELECT rv, body FROM versions WHERE resource = 'resourcequotas'").fetchall()
        for rv, body in found:
            obj = json.loads(body)
            del obj["spec"]
            if obj["metadata"]["name"] == "old":
                database.execute("UPDATE versions SET body = ? WHERE rv = ?", (json.dumps(obj).encode(), rv))
    again = start(data_dir=tmp_path, controllers=True).client()
    assert [one["spec"] for one in again.get(QUOTAS)["items"]] == [{}, {}]
    for name in ("new", "old"):
        again.delete(f"{QUOTAS}/{name}")
    assert failures == []


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b'{"metadata":{}}', b'{"metadata":5}', b"[" * 100_000])
def test_a_stored_object_that_cannot_be_read_is_ignored(
    start: Callable[..., Running], tmp_path: Path, failures: list[str], body: bytes
) -> None:
    """It stays in the file; the others are served."""
    first = start(data_dir=tmp_path)
    for name in ("bad", "good"):
        first.client().create(QUOTAS, {"metadata": {"name": name}})
    first.stop()
    with rewritten(tmp_path) as database:
        changed = "UPDATE versions SET body = ? WHERE resource = 'resourcequotas' AND instr(body, ?)"
        assert database.execute(changed, (body, b'"bad"')).rowcount == 1
    again = start(data_dir=tmp_path).client()
    assert [one["metadata"]["name"] for one in again.get(QUOTAS)["items"]] == ["good"]
    assert ["A stored object is ignored" in failure for failure in failures] == [True]


def test_a_stored_policy_that_denies_everything_does_not_prevent_a_start(
    start: Callable[..., Running], tmp_path: Path
) -> None:
    """Not even if it denies the server's own objects, which are then not updated."""
    first = start(data_dir=tmp_path)
    admin = first.client()
    rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*"]}
    policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "false"}]}
    admin.create(policies, {"metadata": {"name": "no"}, "spec": spec})
    bindings = policies.replace("policies", "policybindings")
    admin.create(bindings, {"metadata": {"name": "no"}, "spec": {"policyName": "no", "validationActions": ["Deny"]}})
    first.stop()
    again = start(data_dir=tmp_path).client()
    assert again.call("POST", QUOTAS, {"metadata": {"name": "q"}})[0] == 422
    again.delete(f"{bindings}/no")
    again.create(QUOTAS, {"metadata": {"name": "q"}})


def test_a_failing_subscriber_affects_neither_the_writer_nor_the_others(failures: list[str]) -> None:
    """The failure is logged with the name of the object, also for subscribers of a topic and at a replay."""
    world = World(nodes=0)
    config_maps = world.store.collection("configmaps")
    seen: list[str] = []

    def fail(_: Change) -> None:
        raise KeyError("spec")

    def note(change: Change) -> None:
        seen.append(change.type)

    for topic in (None, (NAMESPACE, "default")):
        config_maps.subscribe(fail, topic)
        config_maps.subscribe(note, topic)
    world.create("configmaps", "c")
    config_maps.replay(fail)
    assert seen == ["ADDED", "ADDED"]
    assert len(failures) == 3
    assert all('object="default/c"' in failure for failure in failures)
