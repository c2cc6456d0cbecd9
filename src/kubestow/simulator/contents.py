"""The objects of a simulation: put in, changed, deleted and read as through the API, as plain dicts."""

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from typing import Any

from kubestow.api.pod import Pod
from kubestow.apiserver.errors import ApiError, invalid
from kubestow.apiserver.objects.intent import Intent
from kubestow.apiserver.objects.removal import DeleteOptions
from kubestow.apiserver.objects.writing import check
from kubestow.apiserver.resources import BY_KIND, BY_STORAGE, Resource
from kubestow.apiserver.rules import causes
from kubestow.simulator.plane import Plane
from kubestow.simulator.settings import MOST_PODS, demand, demand_callable

Object = dict[str, Any]
_FIRST = ("Namespace", "PriorityClass", "ResourceQuota", "LimitRange")
_LEFT_OUT = frozenset({"Lease", "Event", "EndpointSlice", "Endpoints", "ControllerRevision"})
"""Kinds that the simulation has no use for, or makes anew."""
KINDS = {one.kind: one for one in BY_STORAGE.values()}
_SLIPS = 2
"""So many letters may a slip of the pen leave out or add; PodCertificateRequest is no CertificateSigningRequest."""


class ObjectError(ValueError):
    """An object that cannot be taken; the message names it and says why."""

    def __init__(self, message: str, obj: Object | None = None, refusal: ApiError | None = None) -> None:
        super().__init__(message)
        self.object = obj
        self.refusal = refusal


def name_of(obj: Object) -> str:
    """Kind, namespace and name, as errors tell."""
    metadata = obj["metadata"] if isinstance(obj.get("metadata"), dict) else {}
    namespace = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{obj.get('kind')} {namespace}{metadata.get('name') or metadata.get('generateName', '')}"


class Contents:
    """What is in a control plane."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def add(self, *objects: Object) -> None:
        """Create objects; those that come from a cluster, with a uid, stay what they are. Raises ObjectError."""
        for obj in objects:
            _demand_manifest(obj)
        ordered = sorted(objects, key=lambda obj: obj.get("kind") not in _FIRST)
        _demand_no_cycle(objects)
        known = {obj["metadata"].get("uid") for obj in objects} | self._plane.store.by_uid.keys()
        for obj in ordered:
            self._take(obj, known if obj["metadata"].get("uid") else None)

    def put(self, obj: Object) -> None:
        """Have an object be as it is in another cluster, whatever it was before; raises ObjectError."""
        _demand_manifest(obj)
        self._take(obj, self._plane.store.by_uid.keys())

    def _take(self, obj: Object, known: Any) -> None:
        """Create an object, or restore it if the UIDs of possible owners are `known`; raises ObjectError."""
        resource = _resource(obj)
        if resource is None or resource.kind in _LEFT_OUT:
            return
        try:
            if known is None:
                self._create(resource, obj)
            else:
                self._restore(resource, obj, known)
        except ApiError as error:
            raise ObjectError(f"{name_of(obj)}: {error.message}", obj, error) from None

    def _create(self, resource: Resource, obj: Object) -> None:
        _demand_room(resource, obj)
        namespace = self._namespace(resource, obj)
        status = obj.get("status")
        record = self._plane.writer.create(resource, namespace, _copied(obj), Intent(validation="Strict"))
        if resource.storage == "nodes" and status:
            self.update("Node", record.name, lambda node: node.update(status=_copied(status)), sub="status")

    def _namespace(self, resource: Resource, obj: Object) -> str:
        """The namespace of an object, which is made if it is not there."""
        if not resource.namespaced:
            return ""
        namespace: str = obj["metadata"].get("namespace") or "default"
        self.ensure_namespace(namespace)
        return namespace

    def ensure_namespace(self, name: str) -> None:
        """Make a namespace that is not there."""
        if self._plane.store.get("namespaces", "", name) is None:
            self._plane.writer.create(BY_STORAGE["namespaces"], "", {"metadata": {"name": name}}, Intent())

    def _restore(self, resource: Resource, obj: Object, known: Any) -> None:
        """Put in an object of another cluster as it is: status, owners and all."""
        obj = _copied(obj)
        _demand_room(resource, obj)
        check(resource, obj, Intent(validation="Ignore"))
        if resource.conversion is not None:
            obj = resource.conversion.to_stored(obj)
        resource = BY_STORAGE[resource.storage]
        obj["apiVersion"], obj["kind"] = resource.api_version, resource.kind
        resource.rules.default(obj)
        metadata = obj["metadata"]
        wrong = list(resource.rules.validate_status(obj, obj))
        if wrong:
            raise invalid(resource.group, resource.kind, metadata["name"], wrong)
        metadata.pop("managedFields", None)
        metadata.setdefault("creationTimestamp", self._plane.store.now())
        if resource.namespaced:
            metadata["namespace"] = self._namespace(resource, obj)
        owners = [one for one in metadata.get("ownerReferences", ()) if one.get("uid") in known]
        if owners:
            metadata["ownerReferences"] = owners
        else:
            # What nobody here owns would be collected as garbage.
            metadata.pop("ownerReferences", None)
        if resource.storage == "pods":
            obj.setdefault("status", {}).setdefault("phase", "Pending")
            for told in obj["status"].get("containerStatuses", ()):
                if "running" in told.get("state", {}):
                    # How long it has been running is not known to be a part of how long it will.
                    told["state"]["running"]["startedAt"] = self._plane.store.now()
        self._plane.store.put(resource.storage, obj)

    def remove(self, kind: str, name: str, namespace: str = "default") -> None:
        """Have an object be gone at once, without grace and finalizers."""
        resource, where = self._where(kind, name, namespace)
        record = self._plane.store.get(resource.storage, where, name)
        if record is not None:
            self._plane.store.delete(resource.storage, record)

    def update(
        self, kind: str, name: str, alter: Callable[[Object], Any], namespace: str = "default", *, sub: str = ""
    ) -> None:
        """Have `alter` change an object; raises ObjectError if it is not there or may not be changed so."""
        resource, where = self._where(kind, name, namespace)
        demand_callable("alter", alter)

        def change(current: Object) -> Object:
            alter(current)
            _demand_room(resource, current)
            return current

        try:
            self._plane.writer.update(resource, where, name, change, Intent(), sub=sub)
        except ApiError as error:
            raise ObjectError(f"{kind} {name}: {error.message}") from None

    def delete(self, kind: str, name: str, namespace: str = "default", **options: Any) -> None:
        """Delete an object; `options` are those of DeleteOptions. Raises ObjectError if it is not there."""
        resource, where = self._where(kind, name, namespace)
        try:
            self._plane.remover.delete(resource, where, name, DeleteOptions(**options), Intent())
        except ApiError as error:
            raise ObjectError(f"{kind} {name}: {error.message}") from None

    def get(self, kind: str, name: str, namespace: str = "default") -> Object | None:
        """An object, None if it is not there."""
        resource, where = self._where(kind, name, namespace)
        record = self._plane.store.get(resource.storage, where, name)
        return None if record is None else record.object()

    def _where(self, kind: str, name: str, namespace: str) -> tuple[Resource, str]:
        """The resource and the namespace in which an object is stored, if there is one of that name."""
        demand("name", name, str, "text")
        demand("namespace", namespace, str, "text")
        resource = _kind(kind)
        return resource, namespace if resource.namespaced else ""

    def objects(self, kind: str) -> Iterator[Object]:
        """All objects of a kind, oldest first."""
        return (record.object() for record in self._plane.store.collection(_kind(kind).storage).objects.values())

    def pod_names(self) -> list[str]:
        """Pods that have not ended, as namespace/name."""
        return [key for kind, key in self._plane.current if kind is Pod]


def _resource(obj: Object) -> Resource | None:
    found = BY_KIND.get((str(obj.get("apiVersion")), str(obj.get("kind"))))
    return found if found is not None and found.stored else None


def is_taken(obj: Object) -> bool:
    """Whether an object is of a kind that has a part in a simulation."""
    resource = _resource(obj)
    return resource is not None and resource.kind not in _LEFT_OUT


def meant_kind(version: str, kind: str) -> str:
    """The kind that is probably meant by one that is not known; empty if it may well be somebody else's."""
    group = version.rpartition("/")[0]
    known = {one.kind.lower(): one.kind for one in BY_KIND.values() if one.group == group}
    if kind in known.values() or version not in {known_version for known_version, _ in BY_KIND}:
        return ""
    nearest = [one for one in get_close_matches(kind.lower(), known, 1) if abs(len(one) - len(kind)) <= _SLIPS]
    return known[nearest[0]] if nearest else ""


def _kind(kind: str) -> Resource:
    if kind not in KINDS:
        raise ObjectError(f"there is no kind {kind}; kinds are written as in manifests, such as Pod or Deployment")
    return KINDS[kind]


def _copied(obj: Any) -> Any:
    if isinstance(obj, dict):
        return {key: _copied(value) for key, value in obj.items() if value is not None}
    return [_copied(one) for one in obj] if isinstance(obj, list) else obj


def _demand_manifest(obj: Any) -> None:
    """Raise ObjectError for what is no object at all."""
    if not isinstance(obj, dict):
        raise ObjectError(f"objects: must be dicts, as manifests are, not {obj!r:.60}")
    version, kind = obj.get("apiVersion"), obj.get("kind")
    if not isinstance(version, str) or not isinstance(kind, str):
        raise ObjectError(f"objects: {obj!r:.60}: needs apiVersion and kind, such as v1 and Pod", obj)
    if not isinstance(obj.get("metadata"), dict):
        raise ObjectError(f"{kind}: metadata: must be an object, not {obj.get('metadata')!r:.60}", obj)
    if (version, kind) not in BY_KIND:
        meant = meant_kind(version, kind)
        hint = f"; did you mean {meant}?" if meant else ""
        raise ObjectError(f"{name_of(obj)}: there is no kind {kind!r} in {version}{hint}", obj)


def _demand_room(resource: Resource, obj: Object) -> None:
    """Raise ApiError for objects that ask for more pods than a simulation has room for."""
    wrong = [
        causes.invalid(f"spec.{field}", obj["spec"][field], f"a simulation has room for {MOST_PODS} pods of one object")
        for field in ("replicas", "parallelism")
        if isinstance(obj.get("spec"), dict)
        and isinstance(obj["spec"].get(field), int)
        and obj["spec"][field] > MOST_PODS
    ]
    if wrong:
        raise invalid(resource.group, resource.kind, obj["metadata"].get("name", ""), wrong)


def _demand_no_cycle(objects: Iterable[Object]) -> None:
    """Objects may not own each other in a circle: nothing would ever collect them."""
    known = {
        obj["metadata"]["uid"]: obj
        for obj in objects
        if isinstance(obj.get("metadata"), dict) and obj["metadata"].get("uid")
    }
    owners = {
        uid: [one["uid"] for one in obj["metadata"].get("ownerReferences") or () if one.get("uid")]
        for uid, obj in known.items()
    }
    try:
        TopologicalSorter(owners).prepare()
    except CycleError as error:
        # The circle as it is found has each object before those that it owns; the first and the last are the same.
        circle = [known[uid] for uid in reversed(error.args[1])]
        names = " is owned by ".join(map(name_of, circle))
        raise ObjectError(f"objects own each other in a circle: {names}", circle[0]) from None
