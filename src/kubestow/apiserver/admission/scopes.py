"""The variables that expressions of policies and webhooks may use, and their compilation.

`object`, `oldObject`, `params` and `namespaceObject` are of any type; `request` describes the request; `variables` are
expressions themselves.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kubestow.api.cel import CompileError, Environment, Program
from kubestow.api.cel.library import KUBERNETES
from kubestow.api.cel.types import BOOL, DYN, STRING, Kind, Type, list_of, map_of

Object = dict[str, Any]
_COMPILED_CACHE_SIZE = 1_024
VARIABLES = "kubernetes.variables"
_VARIABLES = Type(Kind.STRUCT, VARIABLES)
_REQUEST = Type(Kind.STRUCT, "kubernetes.AdmissionRequest")
_KIND = Type(Kind.STRUCT, "kubernetes.GroupVersionKind")
_RESOURCE = Type(Kind.STRUCT, "kubernetes.GroupVersionResource")
_USER = Type(Kind.STRUCT, "kubernetes.UserInfo")
_STRUCTS = {
    _REQUEST.name: {
        "kind": _KIND,
        "resource": _RESOURCE,
        "subResource": STRING,
        "requestKind": _KIND,
        "requestResource": _RESOURCE,
        "requestSubResource": STRING,
        "name": STRING,
        "namespace": STRING,
        "operation": STRING,
        "userInfo": _USER,
        "dryRun": BOOL,
        "options": DYN,
    },
    _KIND.name: {"group": STRING, "version": STRING, "kind": STRING},
    _RESOURCE.name: {"group": STRING, "version": STRING, "resource": STRING},
    _USER.name: {
        "username": STRING,
        "uid": STRING,
        "groups": list_of(STRING),
        "extra": map_of(STRING, list_of(STRING)),
    },
}
MESSAGES = frozenset(("Object", "JSONPatch"))
"""Message types that expressions of mutating policies construct."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The variables and types that expressions of a policy can use, besides the write itself."""

    params: bool = False
    variables: tuple[tuple[str, Type], ...] = ()
    makes_objects: bool = False

    @property
    def environment(self) -> Environment:
        """The declarations for the compiler."""
        names = ("object", "oldObject", "namespaceObject", *(("params",) if self.params else ()))
        types = dict.fromkeys(names, DYN) | {"request": _REQUEST, "variables": _VARIABLES}
        messages = MESSAGES if self.makes_objects else frozenset[str]()
        return Environment(KUBERNETES, types, {**_STRUCTS, VARIABLES: dict(self.variables)}, messages)


@lru_cache(maxsize=_COMPILED_CACHE_SIZE)
def compiled(source: str, scope: Scope, *types: Type) -> Program:
    """Compile an expression; raises CompileError, also if its result is of none of `types`."""
    program = Program(source, scope.environment)
    if types and program.type not in (*types, DYN):
        raise CompileError(f"must evaluate to {' or '.join(one.name for one in types)}")
    return program


def with_variables(scope: Scope, variables: Sequence[Object]) -> Scope:
    """Return the scope with the variables of a policy; each can use the previous ones. Raises CompileError."""
    for one in variables:
        program = compiled(one.get("expression", ""), scope)
        entry = (one.get("name", ""), program.type)
        scope = Scope(scope.params, (*scope.variables, entry), scope.makes_objects)
    return scope
