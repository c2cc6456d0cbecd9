"""Conformance of kind `selector`: label selectors with their text form, node selectors, tolerations."""

from typing import Any

from kubestow.api.codec import convert
from kubestow.api.labels import SelectorError, compile_selector
from kubestow.api.meta import LabelSelector
from kubestow.api.node import Node, NodeSelector, Taint
from kubestow.api.node_selector import compile_node_selector
from kubestow.api.pod import Toleration
from kubestow.api.tolerations import tolerates


def check(case: dict[str, Any]) -> str | None:
    """Return the first selector that differs from the recorded one, None if there is none."""
    for number, (given, expected) in enumerate(zip(case["inputs"], case["expect"], strict=True)):
        try:
            got = _ANSWERS[given["kind"]](given)
        except SelectorError as error:
            if "error" not in expected:
                return f"input {number} {given}: rejected ({error}), expected {expected}"
            continue
        if "error" in expected:
            return f"input {number} {given}: {got}, expected an error: {expected['error']}"
        for name, answer in expected.items():
            if got.get(name) != answer:
                return f"input {number} {given}: {name} is {got.get(name)!r}, expected {answer!r}"
    return None


def _label_selector(given: dict[str, Any]) -> dict[str, Any]:
    selector = given.get("selector")
    compiled = compile_selector(None if selector is None else convert(LabelSelector, selector))
    return {"match": compiled.matches(given.get("labels") or {}), "string": str(compiled)}


def _node_selector(given: dict[str, Any]) -> dict[str, Any]:
    meta = convert(Node, given["node"]).metadata
    selector = compile_node_selector(convert(NodeSelector, given["selector"])).checked()
    return {"match": selector.matches(meta.labels, meta.name)}


def _toleration(given: dict[str, Any]) -> dict[str, Any]:
    taint = convert(Taint, given["taint"])
    tolerations = [convert(Toleration, toleration) for toleration in given.get("tolerations") or []]
    return {"match": any(tolerates(toleration, taint, comparison_operators=True) for toleration in tolerations)}


_ANSWERS = {"labelSelector": _label_selector, "nodeSelector": _node_selector, "toleration": _toleration}
