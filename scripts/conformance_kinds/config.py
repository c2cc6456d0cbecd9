"""Conformance of kind `config`: a configuration is completed to the same values, or rejected for the same reason."""

import re
from typing import Any

import yaml

from kubestow import config
from kubestow.config import ConfigError, Problem


def check(case: dict[str, Any]) -> str | None:
    """Return None if the case passes, else the first difference."""
    text, expect = case["configYAML"], case["expect"]
    try:
        # An empty text stands for a scheduler without a configuration file.
        completed = config.load(text) if text else config.default()
    except ConfigError as error:
        return _compare_refusal(expect, error.problems)
    if "yaml" not in expect:
        return f"accepted, but should be rejected: {expect}"
    return _difference(yaml.safe_load(expect["yaml"]), yaml.safe_load(config.dump(completed)), "")


def _compare_refusal(expect: dict[str, Any], problems: list[Problem]) -> str | None:
    found = "; ".join(map(str, problems))
    if "yaml" in expect:
        return f"rejected, but should be accepted: {found}"
    for expected in [*expect.get("errors", ()), *filter(None, [expect.get("error")])]:
        missing = [name for name in _names_in(expected) if not any(_names(problem, name) for problem in problems)]
        if missing:
            return f"{expected!r} names {missing[0]}, which is not in: {found}"
    return None


def _names_in(error: str) -> list[str]:
    """Return the field paths, plugins and kinds that an error of kube-scheduler names."""
    construction = re.match(r'initializing profiles: .*?initializing plugin "(\w+)": (.*)', error)
    if construction:
        return [f"args.{path}" for path in re.findall(r"(?:^\[?|, )([a-z][\w.\[\]]*\w\]?): [A-Z]", construction[2])]
    quoted = re.findall(r'(?:[Pp]lugin|field|kind|version|key|duration) "([^"]+)"', error)
    if quoted:
        return quoted
    for pattern in (
        r"Go struct field [\w.]+\.(\w+) of type",
        r"Object '(\w+)' is missing",
        r"^([a-z][\w.\[\]]*): ",
    ):
        found = re.search(pattern, error)
        if found:
            return [found[1]]
    if "queue sort plugin args" in error:
        return ["pluginConfig.args"]
    if "queue sort plugin" in error:
        return ["queueSort"]
    return ["bind"] if "bind plugin" in error else []


def _names(problem: Problem, name: str) -> bool:
    """Return whether a problem is about the named item: its path ends with the name, or its message contains it."""
    # Ignore case: kube-scheduler writes queueSort.Enabled.
    field, path = name.lower(), problem.path.lower()
    return path == field or path.endswith((f".{field}", f"]{field}")) or f'"{name}"' in problem.message


def _difference(expected: Any, actual: Any, path: str) -> str | None:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in sorted(expected.keys() | actual.keys()):
            if key not in actual or key not in expected:
                return f"{path}.{key}: {'missing' if key in expected else 'unexpected'}"
            found = _difference(expected[key], actual[key], f"{path}.{key}")
            if found:
                return found
        return None
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = enumerate(zip(expected, actual, strict=True))
        return next(filter(None, (_difference(e, a, f"{path}[{i}]") for i, (e, a) in pairs)), None)
    return None if expected == actual else f"{path}: expected {expected!r}, got {actual!r}"
