"""The description of a resource and its subresources: names, verbs, rules, columns, conversion."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.objects.intent import User
from kubestow.apiserver.printing.columns import PLAIN, Columns
from kubestow.apiserver.rules import names
from kubestow.apiserver.schema.reader import openapi_name, structs
from kubestow.apiserver.schema.types import Struct
from kubestow.config.features import Features

Object = dict[str, Any]
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


def _no_objection(_new: Object, _old: Object) -> Iterator[Cause]:
    return iter(())


def drop_status(obj: Object) -> None:
    """Remove the status that a request gives a new object."""
    obj.pop("status", None)


def set_status(**status: Any) -> Callable[[Object], None]:
    """Return a rule that gives new objects this status, overriding that in the request."""

    def prepare(obj: Object) -> None:
        obj["status"] = copy.deepcopy(status)

    return prepare


@dataclass(frozen=True, slots=True)
class Rules:
    """Functions that default, complete and validate the objects of a resource, beyond its schema."""

    default: Callable[[Object], None] = lambda _: None
    prepare_create: Callable[[Object], None] = drop_status
    complete: Callable[[Object], None] = lambda _: None
    """Set fields that depend on generated values: names and UIDs."""
    validate: Callable[[Object], Iterator[Cause]] = lambda _: iter(())
    prepare_update: Callable[[Object, Object], None] = lambda _new, _old: None
    validate_update: Callable[[Object, Object], Iterator[Cause]] = _no_objection
    prepare_status: Callable[[Object, Object], None] = lambda _new, _old: None
    validate_status: Callable[[Object, Object], Iterator[Cause]] = _no_objection
    """Validate the new status when a request writes only the status."""
    validate_in_namespace: Callable[[Object, dict[str, str]], Iterator[Cause]] | None = None
    """Validate a new object, given the labels of its namespace."""
    validate_last: Callable[[Object, Object | None], Iterator[Cause]] = lambda _new, _old: iter(())
    """Validate an object that passed all other rules, given the old object, if any."""
    drop_disabled_fields: Callable[[Object, Object | None, Features], None] = lambda _new, _old, _features: None
    """Remove fields whose feature gate is disabled, unless the old object, if any, uses them."""
    validate_with_gates: Callable[[Object, Features], Iterator[Cause]] = lambda _obj, _features: iter(())
    """Validate an object, given the feature gates."""
    valid_name: names.Wrong = names.dns_subdomain
    set_author: Callable[[Object, User], None] = lambda _obj, _user: None
    """Record the author in a new object."""
    set_timestamps: Callable[[Object, Object | None, str], None] = lambda _new, _old, _now: None
    """Set timestamps inside an object, given the old object, if any, and the current time."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """Conversion of the objects of a resource to the stored version, and back."""

    to_stored: Callable[[Object], Object]
    from_stored: Callable[[Object], Object]


@dataclass(frozen=True, slots=True)
class Scale:
    """The paths in an object of the wanted and the current number of replicas, and of the selector of the pods."""

    wanted: tuple[str, ...] = ("spec", "replicas")
    present: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ("spec", "selector")


@dataclass(frozen=True, slots=True)
class Part:
    """The part of an object that a subresource reads and writes."""

    merge: Callable[[Object, Object, "Resource"], Object]
    """Return the object to store, from the new and the old one."""
    has_rules: bool = True
    """Whether the resource's defaults and validation apply."""
    validate_update: Callable[[Object, Object], Iterator[Cause]] | None = _no_objection
    """Validates the change; None for the rule of the resource."""


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource: a part of an object, or an action on it that rest/subresources.py implements."""

    part: Part | None = None
    gvk: tuple[str, str, str] | None = None
    """Group, version and kind of its objects, where they differ from those of the resource."""
    verbs: tuple[str, ...] = ("get", "patch", "update")


class Resource:
    """A resource: its kind, its names and the rules of its objects.

    `names` are kind, plural name and short names; `selectable` are the fields that field selectors may use besides name
    and namespace: `alias=field` for a field with a second name, `field|other` for one that falls back to another if it
    is empty. Resources with the same `storage` share their objects.
    """

    def __init__(
        self,
        api_version: str,
        names: str,
        subresources: str = "",
        *,
        cluster: bool = False,
        generation: bool = False,
        categories: tuple[str, ...] = (),
        selectable: str = "",
        rules: Rules | None = None,
        columns: Columns = PLAIN,
        verbs: tuple[str, ...] = _VERBS,
        storage: str = "",
        conversion: Conversion | None = None,
        scale: Scale | None = None,
        kept_with_status: tuple[str, ...] | None = (),
        schema: Struct | None = None,
    ) -> None:
        self.kind, self.plural, *short = names.split()
        self.api_version = api_version
        self.group, _, self.version = api_version.rpartition("/")
        self.singular = self.kind.lower()
        self.short_names = tuple(short)
        self.list_kind = f"{self.kind}List"
        self.namespaced = not cluster
        self.subresources = tuple(subresources.split())
        self.has_status = "status" in self.subresources
        self.counts_generation = generation
        self.categories = categories
        self.verbs = verbs
        self.stored = "get" in verbs
        """Whether objects are stored; the others are evaluated on request."""
        self.qualified = f"{self.plural}.{self.group}" if self.group else self.plural
        self.storage = storage or self.qualified
        first = [field.partition("|") for field in selectable.split()]
        given = [field.rpartition("=") for field, _, _ in first]
        self.field_fallbacks = {field.rpartition("=")[2]: other for field, _, other in first if other}
        self.selectable_fields = tuple(dict.fromkeys(field for _, _, field in given))
        self.field_aliases = {alias: field for alias, _, field in given if alias}
        self.field_paths = tuple(tuple(field.split(".")) for field in self.selectable_fields)
        self.rules = rules or Rules()
        self.columns = columns
        self.conversion = conversion
        self.scale = scale or Scale()
        self.kept_with_status = kept_with_status
        """Metadata that a write of the status does not change; None for all metadata."""
        self.is_custom = schema is not None
        self.served = True
        """Whether this version is served; a version of a custom resource may be for storage only."""
        self.deprecation = ""
        """The warning that requests for this version get."""
        if schema is not None:
            self.schema = schema

    @cached_property
    def schema(self) -> Struct:
        """The schema of this resource's objects."""
        return structs()[openapi_name(self.api_version, self.kind)]

    def add_spec(self, obj: Object) -> None:
        """Add an empty spec to an object without one if its kind has a spec, as in Kubernetes."""
        if self._has_spec:
            obj.setdefault("spec", {})

    @cached_property
    def _has_spec(self) -> bool:
        spec = None if self.is_custom else self.schema.fields.get("spec")
        return spec is not None and isinstance(spec.type, Struct)

    def __repr__(self) -> str:
        return f"<Resource {self.qualified}/{self.version}>"
