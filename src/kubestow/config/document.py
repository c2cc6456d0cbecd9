"""Text to a tree of dicts, lists and scalars, as Kubernetes reads configuration files.

A file that starts with `{` is JSON. Anything else is YAML by the rules of the Go library Kubernetes uses: `yes`, `on`
and `y` are booleans, `0o17`, `017` and `1_000` are integers, `1e3` is a number, dates and `1:30` are strings; only the
first document counts. A key that appears twice is a problem: the last one does not win.
"""

import json
import math
import re
from typing import Any

import yaml

from kubestow.config.problems import ConfigError, Problem, child

_PLAIN = "plain"
_STRING = "tag:yaml.org,2002:str"
_MERGE_KEY = "<<"
_MOST_VALUES = 100_000

_WORDS: dict[str, bool | float | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
}
_INTEGER = re.compile(r"[-+]?(0[xX][0-9a-fA-F]{1,64}|0[bB][01]{1,64}|0[oO][0-7]{1,64}|0[0-7]{0,64}|[1-9][0-9]{0,64})")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


def parse(text: str) -> Any:
    """The tree of a file; raises ConfigError for bad syntax and for duplicate keys."""
    try:
        problems: list[Problem] = []
        tree = _parse_json(text, problems) if text.lstrip().startswith("{") else _parse_yaml(text, problems)
    except RecursionError:
        raise ConfigError([Problem("", "nested too deeply, or an alias that contains itself")]) from None
    if problems:
        raise ConfigError(problems)
    return tree


def plain_scalar(text: str) -> str | int | float | bool | None:
    """What an unquoted word of YAML means."""
    if text in _WORDS:
        return _WORDS[text]
    digits = text.replace("_", "")
    if _INTEGER.fullmatch(digits):
        octal = re.fullmatch(r"([-+]?)0([0-7]+)", digits)
        number = int(f"{octal[1]}0o{octal[2]}" if octal else digits, 0)
        if -(2**63) <= number < 2**64:
            return number
    if _FLOAT.fullmatch(digits):
        decimal = float(digits)
        # The file is turned into JSON on its way, where 1e3 and 1.0 are written as integers.
        return int(decimal) if decimal.is_integer() and abs(decimal) < 1e21 else decimal
    return text


class _Duplicates(dict[str, Any]):
    """A JSON object in which keys were repeated."""

    repeated: tuple[str, ...] = ()


def _parse_json(text: str, problems: list[Problem]) -> Any:
    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        if len(set(keys)) == len(keys):
            return dict(pairs)
        found = _Duplicates(pairs)
        found.repeated = tuple(key for index, key in enumerate(keys) if key in keys[:index])
        return found

    def refuse(constant: str) -> float:
        raise ValueError(f"{constant} is not a JSON number")

    try:
        tree = json.loads(text, object_pairs_hook=build, parse_constant=refuse)
    except ValueError as error:
        raise ConfigError([Problem("", f"not valid JSON: {error}")]) from None
    _report_duplicates(tree, "", problems)
    return tree


def _report_duplicates(tree: Any, path: str, problems: list[Problem]) -> None:
    if isinstance(tree, dict):
        if isinstance(tree, _Duplicates):
            problems += [_duplicate(child(path, key)) for key in tree.repeated]
        for key, value in tree.items():
            _report_duplicates(value, child(path, key), problems)
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            _report_duplicates(value, f"{path}[{index}]", problems)


def _duplicate(path: str) -> Problem:
    return Problem(path, "is given more than once")


class _Loader(yaml.BaseLoader):
    """Composes nodes and marks unquoted scalars, whose meaning `plain_scalar` decides."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> Any:
        if kind is yaml.ScalarNode:
            return _PLAIN if implicit[0] else _STRING
        return super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]


def _parse_yaml(text: str, problems: list[Problem]) -> Any:
    loader = None
    try:
        loader = _Loader(text)
        node = loader.get_node() if loader.check_node() else None
    except yaml.YAMLError as error:
        raise ConfigError([Problem("", f"not valid YAML: {_one_line(error)}")]) from None
    finally:
        if loader is not None:
            loader.dispose()
    return None if node is None else _Builder(problems).build(node, "")


def _one_line(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        mark = error.problem_mark
        said = ", ".join(filter(None, (error.context, error.problem)))
        return f"line {mark.line + 1}, column {mark.column + 1}: {said}"
    return " ".join(str(error).split())


class _Builder:
    """Nodes to values. Aliases are expanded; the number of values is bounded, since aliases of aliases explode."""

    def __init__(self, problems: list[Problem]) -> None:
        self._problems = problems
        self._values = 0

    def build(self, node: yaml.Node, path: str) -> Any:
        self._values += 1
        if self._values > _MOST_VALUES:
            raise ConfigError([Problem("", f"more than {_MOST_VALUES} values, aliases included")])
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, f"{path}[{index}]") for index, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _scalar(self, node: yaml.Node, path: str) -> str | int | float | bool | None:
        value = str(node.value) if node.tag == _STRING else plain_scalar(node.value)
        if isinstance(value, float) and not math.isfinite(value):
            self._problems.append(Problem(path, f"{node.value} is not a number that JSON can hold"))
        return value

    def _mapping(self, node: yaml.MappingNode, path: str) -> dict[str, Any]:
        merged: dict[str, Any] = {}
        own: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._problems.append(Problem(path, "has a key that is a list or a mapping"))
                continue
            if key_node.tag == _PLAIN and key_node.value == _MERGE_KEY:
                merged = self._merged(value_node, path) | merged
                continue
            key = self._key(key_node)
            if key in own:
                self._problems.append(_duplicate(child(path, key)))
            own[key] = self.build(value_node, child(path, key))
        return merged | own

    def _merged(self, node: yaml.Node, path: str) -> dict[str, Any]:
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: dict[str, Any] = {}
        for source in sources:
            if isinstance(source, yaml.MappingNode):
                merged = self._mapping(source, path) | merged
            else:
                self._problems.append(Problem(child(path, _MERGE_KEY), "must be a mapping or a list of mappings"))
        return merged

    def _key(self, node: yaml.ScalarNode) -> str:
        value = plain_scalar(node.value) if node.tag == _PLAIN else node.value
        return value if isinstance(value, str) else json.dumps(value)
