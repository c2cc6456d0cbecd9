"""Type checking of policies against the schemas of the kinds that they match.

A policy can match many kinds, so its expressions are first compiled with `object` untyped. This controller compiles
each of them again for every kind that the rules name in full, and reports type errors in the policy's status.
"""

from collections.abc import Iterator

from kubestow.api.cel import CompileError, Environment, Program
from kubestow.api.cel.types import BOOL, DYN, INT, STRING, Kind, Type, list_of, map_of
from kubestow.apiserver.admission.scopes import VARIABLES, Scope
from kubestow.apiserver.controllers.api import Api, Object
from kubestow.apiserver.controllers.queue import own_key
from kubestow.apiserver.custom.declarations import Structs, declare
from kubestow.apiserver.custom.structure import Custom
from kubestow.apiserver.kinds.resource import Resource
from kubestow.apiserver.schema.types import Choice, ListOf, MapOf, Scalar, Struct
from kubestow.apiserver.schema.types import Type as Described
from kubestow.apiserver.store.collection import Key

_POLICIES = "validatingadmissionpolicies.admissionregistration.k8s.io"
_MOST_KINDS = 10
_SCALARS = {"string": STRING, "int32": INT, "int64": INT, "bool": BOOL}


class PolicyTypes:
    """Checks the types of ValidatingAdmissionPolicies."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self.sources = {_POLICIES: own_key}

    def reconcile(self, key: Key) -> float | None:
        """Report the type errors of one policy, once for each generation."""
        policy = self._api.read(_POLICIES, *key)
        if policy is None:
            return None
        generation, status = policy["metadata"].get("generation", 1), policy.get("status", {})
        if status.get("observedGeneration") == generation:
            return None
        found = [{"fieldRef": field, "warning": text} for field, text in self._warnings(policy["spec"])]
        checked = {"expressionWarnings": found} if found else {}
        self._api.set_status(_POLICIES, policy, {**status, "observedGeneration": generation, "typeChecking": checked})
        return None

    def _warnings(self, spec: Object) -> Iterator[tuple[str, str]]:
        kinds = list(self._kinds(spec))[:_MOST_KINDS]
        for index, validation in enumerate(spec.get("validations", ())):
            for part in ("expression", "messageExpression"):
                source = validation.get(part)
                errors = [text for one in kinds if source and (text := mismatch(spec, source, one))]
                if errors:
                    yield f"spec.validations[{index}].{part}", "\n".join(errors)

    def _kinds(self, spec: Object) -> Iterator[Resource]:
        """Yield the kinds that rules name in full; a `*` can match any kind, and is skipped."""
        by_path = self._api.store.registry.by_path
        for rule in spec.get("matchConstraints", {}).get("resourceRules", ()):
            for group in rule.get("apiGroups", ()):
                for version in rule.get("apiVersions", ()):
                    for plural in rule.get("resources", ()):
                        if (group, version, plural) in by_path:
                            yield by_path[(group, version, plural)]


def mismatch(spec: Object, source: str, resource: Resource) -> str:
    """Return the type error of an expression of a policy for a kind; empty if there is none."""
    try:
        Program(source, _environment(spec, resource))
    except CompileError as error:
        return f"{resource.api_version}, Kind={resource.kind}: {error}"
    return ""


def _environment(spec: Object, resource: Resource) -> Environment:
    """Return the typed environment of a policy for a kind. Raises CompileError if a variable does not compile."""
    base, structs, schema = Scope(bool(spec.get("paramKind"))).environment, Structs(), resource.schema
    kind = _type(schema, structs)
    known = structs[VARIABLES] = {}
    types = {**base.variables, "object": kind, "oldObject": kind}
    environment = Environment(base.functions, types, {**base.structs, **structs})
    for variable in spec.get("variables", ()):
        known[variable["name"]] = Program(variable["expression"], environment).type
    return environment


def _type(described: Described, structs: Structs) -> Type:
    match described:
        case Custom():
            if not described.closed:
                return DYN
            type_ = declare(described.openapi, described.name, structs)
            structs[described.name]["metadata"] = _type(described.fields["metadata"].type, structs)
            return type_
        case Struct():
            name = described.openapi_name
            if name not in structs:
                structs[name] = {}
                structs[name].update({field: _type(one.type, structs) for field, one in described.fields.items()})
            return Type(Kind.STRUCT, name)
        case ListOf():
            return list_of(_type(described.item, structs))
        case MapOf():
            return map_of(STRING, _type(described.value, structs))
        case Choice():
            return STRING
        case Scalar():
            return _SCALARS.get(described.name, DYN)
    return DYN
