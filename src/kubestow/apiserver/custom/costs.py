"""Estimated cost of validation rules: the maximum number of evaluations, times the steps of one evaluation.

Both follow from the maximum sizes in the schema, or in a request. Only steps that a loop multiplies are counted in
full, so the estimate never exceeds that of Kubernetes.
"""

from typing import Any

from kubestow.api.cel.syntax import Bind, Call, ListLiteral, Loop, MapLiteral, Node, Select
from kubestow.api.cel.syntax import Ident as Identifier

Schema = dict[str, Any]
LIMIT = 10_000_000
_REQUEST = 3 * 1024 * 1024
_MIN_SIZES = {"integer": 1, "number": 1, "boolean": 4}
_PER_ROUND = 2


def max_items(schema: Schema) -> int:
    """Return the maximum number of items of an array, or values of a map."""
    if schema.get("type") == "array":
        inner, bound = schema.get("items", {}), schema.get("maxItems")
    else:
        inner, bound = schema.get("additionalProperties"), schema.get("maxProperties")
    if bound is not None:
        return int(bound)
    # Each item has a comma, and in a map a key.
    extra = 1 if schema.get("type") == "array" else 4
    return _REQUEST // (_min_size(inner if isinstance(inner, dict) else {}) + extra)


def _min_size(schema: Schema) -> int:
    """Return the minimum size of a value in bytes of JSON."""
    properties = schema.get("properties", {})
    needed = sum(len(name) + 4 + _min_size(properties.get(name, {})) for name in schema.get("required", ()))
    return _MIN_SIZES.get(schema.get("type", ""), 2) + needed


def steps(node: Node, known: dict[str, Schema | None]) -> float:
    """Return the maximum number of steps of an expression, given the schemas of its variables."""
    return _steps(node, known)[0]


def _steps(node: Node, known: dict[str, Schema | None]) -> tuple[float, Schema | None]:
    """Return the steps, and the schema of the value if it is a part of the object."""
    match node:
        case Identifier():
            return 1, known.get(node.name)
        case Select():
            cost, schema = _steps(node.operand, known)
            return cost + 1, schema and schema.get("properties", {}).get(node.field)
        case Call():
            parts = [_steps(one, known) for one in (*node.args, *([node.target] if node.target else ()))]
            inner = _inner(parts[0][1]) if node.function in ("_[_]", "_[?_]") else None
            return 1 + sum(cost for cost, _ in parts), inner
        case Loop():
            return _loop(node, known), None
        case Bind():
            cost, schema = _steps(node.value, known)
            body, result = _steps(node.body, {**known, node.variable: schema})
            return cost + body, result
        case ListLiteral():
            return sum(_steps(one, known)[0] for one in node.elements), None
        case MapLiteral():
            return sum(_steps(one.key, known)[0] + _steps(one.value, known)[0] for one in node.entries), None
    return 0, None


def _loop(node: Loop, known: dict[str, Schema | None]) -> float:
    cost, schema = _steps(node.range, known)
    rounds = max_items(schema) if schema else 1
    is_array = schema is not None and schema.get("type") == "array"
    # With a single variable, a loop over a map iterates over its keys.
    element = _inner(schema) if is_array or len(node.variables) == 2 else None
    inside = {**known, node.variables[0]: None, node.variables[-1]: element}
    filtered = _steps(node.filter, inside)[0] if node.filter else 0
    return cost + rounds * (filtered + _steps(node.body, inside)[0] + _PER_ROUND)


def _inner(schema: Schema | None) -> Schema | None:
    if schema is None:
        return None
    inner = schema.get("items") if schema.get("type") == "array" else schema.get("additionalProperties")
    return inner if isinstance(inner, dict) else None
