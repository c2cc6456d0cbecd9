"""What rules may cost before they are accepted: how often they run at most, times the steps of one run.

Both follow from the largest sizes that the schema allows, or that fit into a request. Only what a loop multiplies is
counted in full, so the estimate never exceeds that of Kubernetes.
"""

from typing import Any

from kubestow.api.cel.syntax import Bind, Call, ListLiteral, Loop, MapLiteral, Node, Select
from kubestow.api.cel.syntax import Ident as Identifier

Schema = dict[str, Any]
LIMIT = 10_000_000
_REQUEST = 3 * 1024 * 1024
_SMALLEST = {"integer": 1, "number": 1, "boolean": 4}
_PER_ROUND = 2


def most_items(schema: Schema) -> int:
    """How many items or values an array or a map can have."""
    if schema.get("type") == "array":
        inner, bound = schema.get("items", {}), schema.get("maxItems")
    else:
        inner, bound = schema.get("additionalProperties"), schema.get("maxProperties")
    if bound is not None:
        return int(bound)
    # Each takes a comma, and a key if it is in a map.
    extra = 1 if schema.get("type") == "array" else 4
    return _REQUEST // (_smallest(inner if isinstance(inner, dict) else {}) + extra)


def _smallest(schema: Schema) -> int:
    """How few bytes of JSON a value takes."""
    properties = schema.get("properties", {})
    needed = sum(len(name) + 4 + _smallest(properties.get(name, {})) for name in schema.get("required", ()))
    return _SMALLEST.get(schema.get("type", ""), 2) + needed


def steps(node: Node, known: dict[str, Schema | None]) -> float:
    """How many steps an expression takes at most, given the schemas of its variables."""
    return _steps(node, known)[0]


def _steps(node: Node, known: dict[str, Schema | None]) -> tuple[float, Schema | None]:
    """The steps, and the schema of the value if it is a part of the object."""
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
    rounds = most_items(schema) if schema else 1
    is_array = schema is not None and schema.get("type") == "array"
    # Of a map, a single variable runs through the keys.
    element = _inner(schema) if is_array or len(node.variables) == 2 else None
    inside = {**known, node.variables[0]: None, node.variables[-1]: element}
    filtered = _steps(node.filter, inside)[0] if node.filter else 0
    return cost + rounds * (filtered + _steps(node.body, inside)[0] + _PER_ROUND)


def _inner(schema: Schema | None) -> Schema | None:
    if schema is None:
        return None
    inner = schema.get("items") if schema.get("type") == "array" else schema.get("additionalProperties")
    return inner if isinstance(inner, dict) else None
