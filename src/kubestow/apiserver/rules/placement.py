"""Checks of the scheduling constraints of pods: selectors, affinity, topology spread, tolerations."""

from collections.abc import Iterator
from typing import Any

from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.causes import (
    check_choice,
    check_enums,
    forbidden,
    invalid,
    required,
    unsupported,
)
from kubestow.apiserver.rules.lists import check_items, check_new, each
from kubestow.apiserver.rules.names import check_labels, check_name, dns_label, label_value, qualified_name

_NO_VALUES = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_SOME_VALUES = "must be specified when `operator` is 'In' or 'NotIn'"
_NO_OPERATOR = "not a valid selector operator"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WHEN = ("DoNotSchedule", "ScheduleAnyway")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def check_label_selector(selector: dict[str, Any] | None, path: str) -> Iterator[Cause]:
    """Check a label selector."""
    if not selector:
        return
    if "matchLabels" in selector:
        yield from check_labels(selector["matchLabels"], f"{path}.matchLabels")
    for where, term in each(selector.get("matchExpressions", ()), f"{path}.matchExpressions"):
        yield from _check_operator(term, where, ())
        yield from check_name(f"{where}.key", term.get("key", ""), qualified_name)
        for number, value in enumerate(term.get("values", ())):
            yield from check_name(f"{where}.values[{number}]", value, label_value)


def _check_operator(term: dict[str, Any], path: str, numeric: tuple[str, ...]) -> Iterator[Cause]:
    operator, values = term.get("operator", ""), term.get("values", ())
    if operator in ("In", "NotIn"):
        if not values:
            yield required(f"{path}.values", _SOME_VALUES)
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            yield forbidden(f"{path}.values", _NO_VALUES)
    elif operator in numeric:
        if len(values) != 1:
            yield required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield invalid(f"{path}.operator", operator, _NO_OPERATOR)


def check_node_selector(selector: dict[str, Any], path: str) -> Iterator[Cause]:
    """Check a node selector."""
    if not selector.get("nodeSelectorTerms"):
        yield required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
    yield from check_items(selector.get("nodeSelectorTerms", ()), f"{path}.nodeSelectorTerms", _check_node_term)


def _check_node_term(term: dict[str, Any], path: str) -> Iterator[Cause]:
    for where, one in each(term.get("matchExpressions", ()), f"{path}.matchExpressions"):
        yield from _check_operator(one, where, ("Gt", "Lt"))
        yield from check_name(f"{where}.key", one.get("key", ""), qualified_name)
    for where, one in each(term.get("matchFields", ()), f"{path}.matchFields"):
        if one.get("operator") not in ("In", "NotIn"):
            yield invalid(f"{where}.operator", one.get("operator", ""), _NO_OPERATOR)
        elif len(one.get("values", ())) != 1:
            why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            yield required(f"{where}.values", why)
        if one.get("key") != "metadata.name":
            yield invalid(f"{where}.key", one.get("key", ""), "not a valid field selector key")


def check_affinity(affinity: dict[str, Any], path: str) -> Iterator[Cause]:
    """Check node affinity, pod affinity and pod anti-affinity."""
    node = affinity.get("nodeAffinity", {})
    if _REQUIRED in node:
        yield from check_node_selector(node[_REQUIRED], f"{path}.nodeAffinity.{_REQUIRED}")
    for where, one in each(node.get(_PREFERRED, ()), f"{path}.nodeAffinity.{_PREFERRED}"):
        yield from _check_weight(one, where)
        yield from _check_node_term(one.get("preference", {}), f"{where}.preference")
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind, {})
        yield from check_items(rules.get(_REQUIRED, ()), f"{path}.{kind}.{_REQUIRED}", _check_pod_term)
        for where, one in each(rules.get(_PREFERRED, ()), f"{path}.{kind}.{_PREFERRED}"):
            yield from _check_weight(one, where)
            yield from _check_pod_term(one.get("podAffinityTerm", {}), f"{where}.podAffinityTerm")


def _check_weight(one: dict[str, Any], path: str) -> Iterator[Cause]:
    weight = one.get("weight", 0)
    if not 1 <= weight <= 100:
        yield invalid(f"{path}.weight", weight, "must be in the range 1-100")


def _check_pod_term(term: dict[str, Any], path: str) -> Iterator[Cause]:
    yield from check_label_selector(term.get("labelSelector"), f"{path}.labelSelector")
    yield from check_label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces", ()):
        yield from check_name(f"{path}.namespace", name, dns_label)
    if not term.get("topologyKey"):
        yield required(f"{path}.topologyKey", "can not be empty")
    yield from check_name(f"{path}.topologyKey", term.get("topologyKey", ""), qualified_name)


def check_spread(constraints: list[dict[str, Any]], path: str) -> Iterator[Cause]:
    """Check topology spread constraints."""
    seen: set[tuple[str, str]] = set()
    for where, constraint in each(constraints, path):
        skew = constraint.get("maxSkew", 0)
        if skew <= 0:
            yield invalid(f"{where}.maxSkew", skew, "must be greater than zero")
        key = constraint.get("topologyKey", "")
        if not key:
            yield required(f"{where}.topologyKey", "can not be empty")
        when = constraint.get("whenUnsatisfiable", "")
        yield from check_choice(when, _WHEN, f"{where}.whenUnsatisfiable")
        yield from check_new((key, when), seen, where, f"{{{key}, {when}}}")
        if "minDomains" in constraint:
            if when == "ScheduleAnyway":
                why = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}"
                yield invalid(f"{where}.minDomains", constraint["minDomains"], why)
            if constraint["minDomains"] <= 0:
                yield invalid(f"{where}.minDomains", constraint["minDomains"], "must be greater than zero")
        policies = dict.fromkeys(("nodeAffinityPolicy", "nodeTaintsPolicy"), ("Honor", "Ignore"))
        yield from check_enums(constraint, where, policies)
        if constraint.get("matchLabelKeys") and "labelSelector" not in constraint:
            yield forbidden(f"{where}.matchLabelKeys", "must not be specified when labelSelector is not set")
        yield from check_label_selector(constraint.get("labelSelector"), f"{where}.labelSelector")


def check_tolerations(tolerations: list[dict[str, Any]], path: str) -> Iterator[Cause]:
    """Check tolerations."""
    for where, toleration in each(tolerations, path):
        operator = toleration.get("operator", "")
        if toleration.get("key"):
            yield from check_name(f"{where}.key", toleration["key"], qualified_name)
        elif operator != "Exists":
            why = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            yield invalid(f"{where}.operator", operator, why)
        if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
            why = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            yield invalid(f"{where}.effect", toleration.get("effect", ""), why)
        value = toleration.get("value", "")
        if operator in ("", "Equal"):
            yield from check_name(f"{where}.operator", value, label_value)
        elif operator == "Exists" and value:
            yield invalid(f"{where}.operator", value, "value must be empty when `operator` is 'Exists'")
        elif operator not in ("Exists", "Lt", "Gt"):
            yield unsupported(f"{where}.operator", operator, ("Equal", "Exists"))
        if toleration.get("effect"):
            yield from check_enums(toleration, where, {"effect": _EFFECTS})
