"""The objects of a simulation as plain dicts: created, changed, deleted and read as through the API."""

from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from typing import Any

from kubestow.api.codec import DecodeError, convert
from kubestow.api.pod import Pod
from kubestow.apiserver.errors import ApiError, invalid
from kubestow.apiserver.objects.intent import Intent
from kubestow.apiserver.objects.removal import DeleteOptions
from kubestow.apiserver.objects.writing import check
from kubestow.apiserver.resources import BY_KIND, BY_STORAGE, Resource
from kubestow.apiserver.rules import causes
from kubestow.simulator.plane import Plane
from kubestow.simulator.settings import MAX_PODS, require, require_callable

Object = dict[str, Any]
_CREATED_FIRST = ("Namespace", "PriorityClass", "ResourceQuota", "LimitRange")
_IGNORED_KINDS = frozenset({"Lease", "Event", "EndpointSlice", "Endpoints", "ControllerRevision"})
"""Kinds that a simulation ignores or creates itself."""
KINDS = {one.kind: one for one in BY_STORAGE.values()}
_MAX_LENGTH_GAP = 2
"""Maximum difference in length of a kind and its suggestion: PodCertificateRequest is not CertificateSigningRequest."""


class ObjectError(ValueError):
    """An object that the simulation rejects; the message names it and gives the reason."""

    def __init__(self, message: str, obj: Object | None = None, refusal: ApiError | None = None) -> None:
        super().__init__(message)
        self.object = obj
        self.refusal = refusal


def name_of(obj: Object) -> str:
    """Return kind, namespace and name of an object for messages."""
    metadata = obj["metadata"] if isinstance(obj.get("metadata"), dict) else {}
    namespace = f"{metadata['namespace']}/" if metadata.get("namespace") else ""
    return f"{obj.get('kind')} {namespace}{metadata.get('name') or metadata.get('generateName', '')}"


class Contents:
    """The objects of a control plane."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane

    def add(self, *objects: Object) -> None:
        """Create objects. Those with a UID are restored as they are, status included. Raises ObjectError."""
        for obj in objects:
            self._require_manifest(obj)
        ordered = sorted(objects, key=lambda obj: obj.get("kind") not in _CREATED_FIRST)
        _require_no_cycle(objects)
        known = {obj["metadata"].get("uid") for obj in objects} | self._plane.store.by_uid.keys()
        for obj in ordered:
            self._insert(obj, known if obj["metadata"].get("uid") else None)

    def knows(self, obj: Object) -> bool:
        """Return whether the kind of an object is built in, or declared by a plugin."""
        name = (str(obj.get("apiVersion")), str(obj.get("kind")))
        return name in BY_KIND or name in self._plane.declared

    def put(self, obj: Object) -> None:
        """Create or replace an object with its state in another cluster; raises ObjectError."""
        self._require_manifest(obj)
        self._insert(obj, self._plane.store.by_uid.keys())

    def _insert(self, obj: Object, known: Any) -> None:
        """Create an object, or restore it if `known`, the UIDs of possible owners, is given; raises ObjectError."""
        resource = self._resource(obj)
        if resource is None:
            return
        try:
            if known is None:
                self._require_decodable(obj)
                self._create(resource, obj)
            else:
                self._restore(resource, obj, known)
        except ApiError as error:
            raise ObjectError(f"{name_of(obj)}: {error.message}", obj, error) from None

    def _require_decodable(self, obj: Object) -> None:
        """Raise ObjectError if a plugin cannot read an object of a kind that it declares."""
        for kind in self._plane.declared.get((obj["apiVersion"], obj["kind"]), ()):
            try:
                convert(kind, obj)
            except DecodeError as error:
                raise ObjectError(f"{name_of(obj)}: {error}", obj) from None

    def _create(self, resource: Resource, obj: Object) -> None:
        _require_pod_limit(resource, obj)
        namespace = self._namespace(resource, obj)
        status = obj.get("status")
        record = self._plane.writer.create(resource, namespace, _copied(obj), Intent(validation="Strict"))
        if resource.storage == "nodes" and status:
            self.update("Node", record.name, lambda node: node.update(status=_copied(status)), sub="status")

    def _namespace(self, resource: Resource, obj: Object) -> str:
        """Return the namespace of an object; create it if it does not exist."""
        if not resource.namespaced:
            return ""
        namespace: str = obj["metadata"].get("namespace") or "default"
        self.ensure_namespace(namespace)
        return namespace

    def ensure_namespace(self, name: str) -> None:
        """Create a namespace unless it exists."""
        if self._plane.store.get("namespaces", "", name) is None:
            self._plane.writer.create(BY_STORAGE["namespaces"], "", {"metadata": {"name": name}}, Intent())

    def _restore(self, resource: Resource, obj: Object, known: Any) -> None:
        """Store an object of another cluster unchanged, including status and owners."""
        obj = _copied(obj)
        _require_pod_limit(resource, obj)
        check(resource, obj, Intent(validation="Ignore"))
        resource.add_spec(obj)
        if resource.conversion is not None:
            obj = resource.conversion.to_stored(obj)
        resource = BY_STORAGE.get(resource.storage, resource)
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
            # An object without existing owners would be garbage-collected.
            metadata.pop("ownerReferences", None)
        if resource.storage == "pods":
            obj.setdefault("status", {}).setdefault("phase", "Pending")
            for container in obj["status"].get("containerStatuses", ()):
                if "running" in container.get("state", {}):
                    # The elapsed run time is unknown and must not count as part of the planned run time.
                    container["state"]["running"]["startedAt"] = self._plane.store.now()
        self._plane.store.put(resource.storage, obj)

    def remove(self, kind: str, name: str, namespace: str = "default") -> None:
        """Remove an object at once, without grace period and finalizers."""
        resource, where = self._locate(kind, name, namespace)
        record = self._plane.store.get(resource.storage, where, name)
        if record is not None:
            self._plane.store.delete(resource.storage, record)

    def update(
        self, kind: str, name: str, alter: Callable[[Object], Any], namespace: str = "default", *, sub: str = ""
    ) -> None:
        """Change an object with `alter`; raises ObjectError if it does not exist or the change is rejected."""
        resource, where = self._locate(kind, name, namespace)
        require_callable("alter", alter)

        def change(current: Object) -> Object:
            alter(current)
            _require_pod_limit(resource, current)
            return current

        try:
            self._plane.writer.update(resource, where, name, change, Intent(), sub=sub)
        except ApiError as error:
            raise ObjectError(f"{kind} {name}: {error.message}") from None

    def delete(self, kind: str, name: str, namespace: str = "default", **options: Any) -> None:
        """Delete an object; `options` are fields of DeleteOptions. Raises ObjectError if it does not exist."""
        resource, where = self._locate(kind, name, namespace)
        try:
            self._plane.remover.delete(resource, where, name, DeleteOptions(**options), Intent())
        except ApiError as error:
            raise ObjectError(f"{kind} {name}: {error.message}") from None

    def get(self, kind: str, name: str, namespace: str = "default") -> Object | None:
        """Return an object, None if it does not exist."""
        resource, where = self._locate(kind, name, namespace)
        record = self._plane.store.get(resource.storage, where, name)
        return None if record is None else record.object()

    def _locate(self, kind: str, name: str, namespace: str) -> tuple[Resource, str]:
        """Return the resource of a kind, and the namespace under which the object is stored."""
        require("name", name, str, "text")
        require("namespace", namespace, str, "text")
        resource = self._kind(kind)
        return resource, namespace if resource.namespaced else ""

    def objects(self, kind: str) -> Iterator[Object]:
        """Yield all objects of a kind, oldest first."""
        return (record.object() for record in self._plane.store.collection(self._kind(kind).storage).objects.values())

    def _resource(self, obj: Object) -> Resource | None:
        """Return the resource of an object; None if a simulation ignores its kind."""
        name = (str(obj.get("apiVersion")), str(obj.get("kind")))
        if name in self._plane.declared:
            return self._plane.store.registry.by_kind[name]
        return BY_KIND[name] if is_simulated(obj) else None

    def _kind(self, kind: str) -> Resource:
        if kind in KINDS:
            return KINDS[kind]
        for (_, name), resource in self._plane.store.registry.by_kind.items():
            if name == kind and resource.is_custom:
                return resource
        raise ObjectError(f"there is no kind {kind}; kinds are written as in manifests, such as Pod or Deployment")

    def _require_manifest(self, obj: Any) -> None:
        """Raise ObjectError unless `obj` is a manifest of a known kind."""
        if not isinstance(obj, dict):
            raise ObjectError(f"objects: must be manifests (dicts), not {obj!r:.60}")
        version, kind = obj.get("apiVersion"), obj.get("kind")
        if not isinstance(version, str) or not isinstance(kind, str):
            raise ObjectError(f"objects: {obj!r:.60}: needs apiVersion and kind, such as v1 and Pod", obj)
        if not isinstance(obj.get("metadata"), dict):
            raise ObjectError(f"{kind}: metadata: must be an object, not {obj.get('metadata')!r:.60}", obj)
        if (version, kind) not in BY_KIND and (version, kind) not in self._plane.declared:
            suggestion = suggest_kind(version, kind)
            hint = f"; did you mean {suggestion}?" if suggestion else ""
            raise ObjectError(f"{name_of(obj)}: there is no kind {kind!r} in {version}{hint}", obj)

    def pod_names(self) -> list[str]:
        """Return the pods that have not ended, as namespace/name."""
        return [key for kind, key in self._plane.current if kind is Pod]


def _resource(obj: Object) -> Resource | None:
    found = BY_KIND.get((str(obj.get("apiVersion")), str(obj.get("kind"))))
    return found if found is not None and found.stored else None


def is_simulated(obj: Object) -> bool:
    """Return whether simulations support the kind of an object."""
    resource = _resource(obj)
    return resource is not None and resource.kind not in _IGNORED_KINDS


def suggest_kind(version: str, kind: str) -> str:
    """Return the known kind most similar to an unknown one; "" if it may be a custom resource."""
    group = version.rpartition("/")[0]
    known = {one.kind.lower(): one.kind for one in BY_KIND.values() if one.group == group}
    if kind in known.values() or version not in {known_version for known_version, _ in BY_KIND}:
        return ""
    nearest = [one for one in get_close_matches(kind.lower(), known, 1) if abs(len(one) - len(kind)) <= _MAX_LENGTH_GAP]
    return known[nearest[0]] if nearest else ""


def _copied(obj: Any) -> Any:
    if isinstance(obj, dict):
        return {key: _copied(value) for key, value in obj.items() if value is not None}
    return [_copied(one) for one in obj] if isinstance(obj, list) else obj


def _require_pod_limit(resource: Resource, obj: Object) -> None:
    """Raise ApiError for an object that requests more pods than a simulation supports."""
    wrong = [
        causes.invalid(f"spec.{field}", obj["spec"][field], f"a simulation supports {MAX_PODS} pods per object")
        for field in ("replicas", "parallelism")
        if isinstance(obj.get("spec"), dict)
        and isinstance(obj["spec"].get(field), int)
        and obj["spec"][field] > MAX_PODS
    ]
    if wrong:
        raise invalid(resource.group, resource.kind, obj["metadata"].get("name", ""), wrong)


def _require_no_cycle(objects: Iterable[Object]) -> None:
    """Raise ObjectError if ownerReferences form a cycle, which would never be garbage-collected."""
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
        # The cycle lists each object before those that it owns; its first and last entries are the same object.
        cycle = [known[uid] for uid in reversed(error.args[1])]
        names = " is owned by ".join(map(name_of, cycle))
        raise ObjectError(f"ownerReferences form a cycle: {names}", cycle[0]) from None
