"""Parsing of text into a tree of dicts, lists and scalars, as Kubernetes reads configuration files.

A file that starts with `{` is JSON, any other is YAML; only the first document is read. A duplicate key is a problem:
the last one does not win.
"""

import json
from typing import Any

from kubestow.api.files.errors import DocumentError
from kubestow.api.files.yaml_documents import yaml_documents
from kubestow.config.problems import ConfigError, Problem, child


def parse(text: str, problems: list[Problem]) -> Any:
    """Parse the text of a file; duplicate keys are added to `problems`. Raises ConfigError for invalid syntax."""
    try:
        return _parse_json(text, problems) if text.lstrip().startswith("{") else _parse_yaml(text, problems)
    except (DocumentError, RecursionError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ConfigError([Problem("", reason)]) from None


def _parse_yaml(text: str, problems: list[Problem]) -> Any:
    first = next(yaml_documents(text), None)
    if first is None:
        return None
    problems += [Problem(fault.path, fault.message) for fault in first.faults]
    return first.tree


class _Duplicates(dict[str, Any]):
    """A JSON object with duplicate keys."""

    repeated: tuple[str, ...] = ()


def _parse_json(text: str, problems: list[Problem]) -> Any:
    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = [key for key, _ in pairs]
        if len(set(keys)) == len(keys):
            return dict(pairs)
        found = _Duplicates(pairs)
        found.repeated = tuple(key for index, key in enumerate(keys) if key in keys[:index])
        return found

    def reject(constant: str) -> float:
        raise ValueError(f"{constant} is not a JSON number")

    try:
        tree = json.loads(text, object_pairs_hook=build, parse_constant=reject)
    except ValueError as error:
        raise ConfigError([Problem("", f"not valid JSON: {error}")]) from None
    _report_duplicates(tree, "", problems)
    return tree


def _report_duplicates(tree: Any, path: str, problems: list[Problem]) -> None:
    if isinstance(tree, dict):
        if isinstance(tree, _Duplicates):
            problems += [Problem(child(path, key), "is given more than once") for key in tree.repeated]
        for key, value in tree.items():
            _report_duplicates(value, child(path, key), problems)
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            _report_duplicates(value, f"{path}[{index}]", problems)
