"""Kinds that plugins declare: custom resources, and built-in kinds that the scheduler itself does not watch.

    @custom_resource("scheduling.x-k8s.io/v1alpha1", "elasticquotas")
    class ElasticQuota(CustomObject, frozen=True):
        spec: QuotaSpec = QuotaSpec()

A kind is a frozen Struct or dataclass with the field `metadata`; it declares only the fields that are read. The
declaration is stored in the class, so a kind needs no registration: everything that lists, watches, stores or decodes
objects asks `resource_of`. Kinds of several API groups may have the same name, and so may several classes.
"""

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, Protocol, TypeVar

import msgspec
from msgspec import Raw

from kubestow.api.fields import parse_fields
from kubestow.api.meta import ApiObject, ObjectMeta

T = TypeVar("T")
K = TypeVar("K", bound=type)

CustomObject = ApiObject
"""The base of a declared kind: an object with `metadata`."""
_DECLARATION = "__resource__"
_DATACLASS = "__dataclass_fields__"
"""The attribute of dataclasses. The module `dataclasses` is loaded only if there is one: start-up must be fast."""


class Named(Protocol):
    """An object's metadata."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...


class CustomResource(msgspec.Struct, frozen=True):
    """The declaration of a kind."""

    group: str
    version: str
    plural: str
    kind: str
    is_namespaced: bool
    field_selector: str = ""

    def selects(self, meta: Named) -> bool:
        """Return whether the field selector selects an object."""
        if not self.field_selector:
            return True
        fields = {"metadata.name": meta.name, "metadata.namespace": meta.namespace}
        return parse_fields(self.field_selector).matches(fields.__getitem__)

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def name(self) -> str:
        """The name of the resource, as in the name of its CustomResourceDefinition."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def event_resource(self) -> str:
        """The name of the resource in cluster events, as in kube-scheduler."""
        return f"{self.plural}.{self.version}.{self.group}"


def rule_text(group: str, resources: Iterable[str], verbs: Iterable[str]) -> str:
    """Return the rule of a role that allows some verbs for resources, which may be `plural/subresource`."""
    return f"{{apiGroups: {_quoted([group])}, resources: {_quoted(resources)}, verbs: {_quoted(verbs)}}}"


def _quoted(names: Iterable[str]) -> str:
    return f"[{', '.join(repr(name) for name in names)}]"


def custom_resource(
    api_version: str, plural: str, *, namespaced: bool = True, kind: str = "", field_selector: str = ""
) -> Callable[[type[T]], type[T]]:
    """Declare the resource of a class: `group/version` (`v1` for the core group), and its plural name.

    `kind` is the name in manifests; without it, the name of the class. `field_selector` selects objects by
    `metadata.name` and `metadata.namespace`, such as one ConfigMap of many. Raises TypeError for a class that is
    neither a Struct nor a dataclass, or has no `metadata`, and ValueError for a name or selector that no resource has.
    """
    group, _, version = api_version.rpartition("/")
    if not version or "/" in group:
        raise ValueError(f"custom_resource: {api_version!r} must be group/version, or v1 for the core group")
    if not plural or plural != plural.lower() or "." in plural:
        raise ValueError(f"custom_resource: {plural!r} must be the plural name in lower case, such as elasticquotas")

    for term in parse_fields(field_selector).terms:
        if term.field not in ("metadata.name", "metadata.namespace"):
            raise ValueError(
                f"custom_resource: {plural} cannot be selected by {term.field}: the fields are metadata.name and "
                "metadata.namespace"
            )

    def declare(declared: type[T]) -> type[T]:
        if "metadata" not in _fields(declared):
            raise TypeError(
                f"custom_resource: class {declared.__name__} must be a Struct or a dataclass with the field "
                "`metadata: ObjectMeta`; CustomObject is a base with that field"
            )
        found = CustomResource(group, version, plural, kind or declared.__name__, namespaced, field_selector)
        setattr(declared, _DECLARATION, found)
        return declared

    return declare


def resource_of(kind: type) -> CustomResource | None:
    """Return the declaration of a kind; None for one without a declaration of its own."""
    found: CustomResource | None = kind.__dict__.get(_DECLARATION)
    return found


def declared_name(kind: type) -> str:
    """Return the name of a declared kind in manifests."""
    declared = resource_of(kind)
    return kind.__name__ if declared is None else declared.kind


def kinds_by_name(kinds: Iterable[type]) -> dict[tuple[str, str], list[type]]:
    """Return declared kinds by apiVersion and kind: several plugins may declare a class of their own for one."""
    found: dict[tuple[str, str], list[type]] = {}
    for kind in dict.fromkeys(kinds):
        own = resource_of(kind)
        if own is not None:
            found.setdefault((own.api_version, own.kind), []).append(kind)
    return found


class Unstructured(ApiObject, frozen=True, dict=True, gc=True):
    """An object whose fields are read by path; see `unstructured`."""

    source: Raw = Raw()

    @cached_property
    def content(self) -> dict[str, Any]:
        """The whole object."""
        decoded: dict[str, Any] = msgspec.json.decode(self.source) if len(self.source) else {}
        return decoded

    def get(self, path: str, default: Any = None) -> Any:
        """Return the value at a path such as `spec.min.cpu` or `zones.0.name`; `default` if there is none."""
        value: Any = self.content
        for part in path.split("."):
            if isinstance(value, dict):
                value = value.get(part)
            elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
                value = value[int(part)]
            else:
                return default
        return default if value is None else value


def unstructured(api_version: str, plural: str, kind: str, *, namespaced: bool = True) -> type[Unstructured]:
    """Return a declared kind whose fields are read by path, for objects whose schema is not known."""
    made: type[Unstructured] = msgspec.defstruct(kind, [], bases=(Unstructured,), frozen=True, dict=True, gc=True)  # type: ignore[assignment]
    return custom_resource(api_version, plural, namespaced=namespaced, kind=kind)(made)


def with_metadata(obj: T, **fields: Any) -> T:
    """Return a copy of an object of a declared kind with other values of some fields of its metadata."""
    metadata = msgspec.structs.replace(obj.metadata, **fields)  # type: ignore[attr-defined]
    if hasattr(obj, _DATACLASS):
        import dataclasses

        return dataclasses.replace(obj, metadata=metadata)  # type: ignore[type-var]
    return msgspec.structs.replace(obj, metadata=metadata)  # type: ignore[type-var]


def _fields(kind: type) -> set[str]:
    if hasattr(kind, _DATACLASS):
        return set(getattr(kind, _DATACLASS))
    return set(kind.__struct_fields__) if issubclass(kind, msgspec.Struct) else set()


__all__ = [
    "CustomObject",
    "CustomResource",
    "ObjectMeta",
    "Unstructured",
    "custom_resource",
    "declared_name",
    "kinds_by_name",
    "resource_of",
    "rule_text",
    "unstructured",
    "with_metadata",
]
