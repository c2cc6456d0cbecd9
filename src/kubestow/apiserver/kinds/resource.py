"""What the server knows of one resource, and of the subresources below it."""

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
    """A new object has no status yet, whatever the request says."""
    obj.pop("status", None)


def begin_with(**status: Any) -> Callable[[Object], None]:
    """A new object has this status, whatever the request says."""

    def prepare(obj: Object) -> None:
        obj["status"] = copy.deepcopy(status)

    return prepare


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for objects of a resource beyond their schema."""

    default: Callable[[Object], None] = lambda _: None
    prepare_create: Callable[[Object], None] = drop_status
    complete: Callable[[Object], None] = lambda _: None
    """Fills in what depends on what the server made up: names and uids."""
    validate: Callable[[Object], Iterator[Cause]] = lambda _: iter(())
    prepare_update: Callable[[Object, Object], None] = lambda _new, _old: None
    validate_update: Callable[[Object, Object], Iterator[Cause]] = _no_objection
    prepare_status: Callable[[Object, Object], None] = lambda _new, _old: None
    validate_status: Callable[[Object, Object], Iterator[Cause]] = _no_objection
    """What may become of the status, written by itself."""
    suits: Callable[[Object, dict[str, str]], Iterator[Cause]] | None = None
    """What is wrong with a new object, given the labels of its namespace."""
    judge: Callable[[Object, Object | None], Iterator[Cause]] = lambda _new, _old: iter(())
    """What is wrong with an object that is valid otherwise, given the old one if there is one."""
    withhold: Callable[[Object, Object | None, Features], None] = lambda _new, _old, _features: None
    """Takes out of an object what the feature gates do not give it, unless the old one, if there is one, has it."""
    gated: Callable[[Object, Features], Iterator[Cause]] = lambda _obj, _features: iter(())
    """What is wrong with an object, given the feature gates."""
    valid_name: names.Wrong = names.dns_subdomain
    sign: Callable[[Object, User], None] = lambda _obj, _user: None
    """Says in a new object who made it."""
    date: Callable[[Object, Object | None, str], None] = lambda _new, _old, _now: None
    """Says since when something holds, given the old object if there is one, and the time."""


@dataclass(frozen=True, slots=True)
class Conversion:
    """How objects of a resource become what is stored, and back."""

    to_stored: Callable[[Object], Object]
    from_stored: Callable[[Object], Object]


@dataclass(frozen=True, slots=True)
class Scale:
    """Where an object keeps its number of replicas, wanted and there, and the selector of what it scales."""

    wanted: tuple[str, ...] = ("spec", "replicas")
    present: tuple[str, ...] = ("status", "replicas")
    selector: tuple[str, ...] = ("spec", "selector")


@dataclass(frozen=True, slots=True)
class Part:
    """The part of an object that a subresource stands for."""

    merge: Callable[[Object, Object, "Resource"], Object]
    """What becomes of the object, out of the new and the old one."""
    has_rules: bool = True
    """Whether defaults and validation of the resource apply."""
    validate_update: Callable[[Object, Object], Iterator[Cause]] | None = _no_objection
    """What may change; None for what the resource itself allows."""


@dataclass(frozen=True, slots=True)
class Subresource:
    """Something below an object: a part of it, or an action on it that rest/subresources.py carries out."""

    part: Part | None = None
    speaks: tuple[str, str, str] | None = None
    """Group, version and kind of its objects, where they are not those of the resource."""
    verbs: tuple[str, ...] = ("get", "patch", "update")


class Resource:
    """One resource: the kind, its names, and what holds for its objects.

    `names` are kind, plural name and short names; `selectable` are the fields that field selectors may use besides name
    and namespace, `other=field` for one that has a second name, `field|other` for one in whose place another stands
    where it is empty. Resources with the same `storage` share their objects.
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
        """Whether objects are kept; others are only answered."""
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
        """Metadata that a write of the status leaves alone; None for all of it."""
        self.is_custom = schema is not None
        self.served = True
        """Whether requests for this version are answered; of custom resources one may be stored only."""
        self.deprecation = ""
        """What users of this version are warned with."""
        if schema is not None:
            self.schema = schema

    @cached_property
    def schema(self) -> Struct:
        """The type of this resource's objects."""
        return structs()[openapi_name(self.api_version, self.kind)]

    def __repr__(self) -> str:
        return f"<Resource {self.qualified}/{self.version}>"
