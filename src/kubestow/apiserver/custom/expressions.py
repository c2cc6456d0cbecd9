"""The CEL rules of schemas, `x-kubernetes-validations`, evaluated for values that are otherwise valid.

A rule is compiled against its schema when the definition is written, so that unknown fields are errors. A rule that
uses `oldSelf` is a transition rule: it is evaluated only if there is an old value. Unchanged values are not validated
again, so that a new rule does not block updates of existing objects.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec

from kubestow.api.cel import CelError, CompileError, Environment, EvaluationError, Program
from kubestow.api.cel.errors import CostLimitError
from kubestow.api.cel.library import KUBERNETES
from kubestow.api.cel.syntax import Ident, walk
from kubestow.api.cel.types import BOOL, STRING, optional_of
from kubestow.api.cel.values import NONE, Optional
from kubestow.apiserver.custom import costs
from kubestow.apiserver.custom.declarations import Schema, Structs, declare, value_of, with_identity
from kubestow.apiserver.errors import Cause
from kubestow.apiserver.rules.names import DUPLICATE, FORBIDDEN, INVALID, REQUIRED
from kubestow.apiserver.store.records import encode

RULES = "x-kubernetes-validations"
_MAX_MESSAGE = 5 * 1024
_MAX_COMPILED = 1_024


@dataclass(frozen=True, slots=True)
class Rule:
    """A compiled rule."""

    condition: Program
    message: Program | None
    is_transition: bool


@lru_cache(maxsize=_MAX_COMPILED)
def _compiled(schema_text: bytes, source: str, message: str, optional_old: bool) -> Rule:
    structs: Structs = {}
    self_type = declare(msgspec.json.decode(schema_text), "object", structs)
    old_type = optional_of(self_type) if optional_old else self_type
    environment = Environment(KUBERNETES, {"self": self_type, "oldSelf": old_type}, structs)
    condition = Program(source, environment)
    if condition.type != BOOL:
        raise CompileError("must evaluate to a bool")
    text = Program(message, environment) if message else None
    if text is not None and text.type != STRING:
        raise CompileError("messageExpression must evaluate to a string")
    used = {one.name for one in walk(condition.tree) if isinstance(one, Ident)}
    return Rule(condition, text, "oldSelf" in used)


def _compile(rule: Schema, schema: Schema) -> Rule:
    bare = {key: value for key, value in schema.items() if key != RULES}
    message = rule.get("messageExpression", "")
    return _compiled(encode(bare), rule.get("rule", ""), message, bool(rule.get("optionalOldSelf")))


def rule_errors(schema: Schema, path: str, runs: float, *, root: bool = False) -> Iterator[Cause]:
    """Yield the errors of the rules of a schema whose values occur at most `runs` times in an object."""
    seen = with_identity(schema) if root else schema
    for index, rule in enumerate(schema.get(RULES, ())):
        here, text = f"{path}.{RULES}[{index}]", rule.get("rule", "")
        if not text.strip():
            yield f"{here}.rule", REQUIRED, "Required value: rule is not specified"
            continue
        try:
            compiled = _compile(rule, seen)
        except CompileError as error:
            yield f"{here}.rule", INVALID, f'Invalid value: "{text}": {error}'
            continue
        factor = runs * costs.steps(compiled.condition.tree, {"self": seen, "oldSelf": seen}) / costs.LIMIT
        if factor > 1:
            excess = "more than 100x" if factor > 100 else f"factor of {factor:.1f}x"
            hint = "adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared"
            why = f"estimated rule cost exceeds budget by {excess} (try simplifying the rule, or {hint})"
            yield f"{here}.rule", FORBIDDEN, f"Forbidden: {why}"


def rule_violations(value: Any, old: Any, schema: Schema, path: str = "", *, root: bool = False) -> Iterator[Cause]:
    """Yield the violations of rules by a value and the values below it."""
    if value is None:
        return
    rules = schema.get(RULES)
    if rules:
        seen = with_identity(schema) if root else schema
        for rule in rules:
            if cause := _evaluate(rule, value, old, seen, path):
                yield cause
    properties, values = schema.get("properties", {}), schema.get("additionalProperties")
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for name, inner in value.items():
            below = properties.get(name) if name in properties else values
            if isinstance(below, dict) and not (root and name == "metadata"):
                yield from rule_violations(inner, before.get(name), below, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        old_items = _items_by_identity(old, schema)
        for index, item in enumerate(value):
            old_item = old_items.get(_identity(item, schema)) if old_items else None
            yield from rule_violations(item, old_item, schema.get("items", {}), f"{path}[{index}]")


def _items_by_identity(old: Any, schema: Schema) -> dict[bytes, Any]:
    """Return the old items of a list by their keys; empty for lists of another type than map."""
    if not isinstance(old, list) or schema.get("x-kubernetes-list-type") != "map":
        return {}
    return {_identity(item, schema): item for item in old}


def _identity(item: Any, schema: Schema) -> bytes:
    keys = schema.get("x-kubernetes-list-map-keys", ())
    return encode([item.get(key) for key in keys] if isinstance(item, dict) else item)


def _evaluate(rule: Schema, value: Any, old: Any, schema: Schema, path: str) -> Cause | None:
    compiled = _compile(rule, schema)
    optional = rule.get("optionalOldSelf")
    if compiled.is_transition:
        if old is None and not optional:
            return None
    elif old is not None and old == value:
        return None
    text = rule.get("message", "").strip() or rule["rule"].strip()
    here = path or "<nil>"
    kind = f'Invalid value: "{schema.get("type", "")}"'
    try:
        now, before = value_of(value, schema), None if old is None else value_of(old, schema)
        if optional:
            before = NONE if old is None else Optional(True, before)
        if compiled.condition.evaluate(now, before):
            return None
    except CostLimitError as error:
        why = f"'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {text}"
        return here, INVALID, f"{kind}: {why}"
    except EvaluationError as error:
        if str(error).startswith("no such overload"):
            what = "call arguments did not match a supported operator, function or macro signature for rule"
            return here, INVALID, f"{kind}: '{error}': {what}: {text}"
        return here, INVALID, f"{kind}: {error} evaluating rule: {text}"
    return _violation(rule, value, _message(compiled, rule, now, before), path)


def _message(compiled: Rule, rule: Schema, now: Any, before: Any) -> str:
    if compiled.message is not None:
        try:
            text = str(compiled.message.evaluate(now, before)).strip()
        except CelError:
            text = ""
        if text and "\n" not in text and len(text) <= _MAX_MESSAGE:
            return text
    given: str = rule.get("message", "").strip()
    return given or f"failed rule: {rule['rule'].strip()}"


def _violation(rule: Schema, value: Any, detail: str, path: str) -> Cause:
    where = rule.get("fieldPath", "")
    here = (path + where if path else where.lstrip(".")) or "<nil>"
    shown = "" if isinstance(value, dict | list) else f": {encode(value).decode()}"
    match rule.get("reason"):
        case "FieldValueForbidden":
            return here, FORBIDDEN, f"Forbidden: {detail}"
        case "FieldValueRequired":
            return here, REQUIRED, f"Required value: {detail}"
        case "FieldValueDuplicate":
            return here, DUPLICATE, f"Duplicate value{shown}: {detail}"
    return here, INVALID, f"Invalid value{shown}: {detail}"
