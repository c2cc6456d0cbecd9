"""Renders the chart: supports only the constructs of Helm that it uses, and raises an error for any other.

Actions between {{ and }}, with - to trim; if, else, with, range, end; paths, strings, numbers; a few functions, alone
or in a pipeline. Helm itself is not required, as it is not available everywhere.
"""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

_ACTION = re.compile(r"\{\{(-?)\s*(.*?)\s*(-?)\}\}", re.DOTALL)
_WORD = re.compile(r'"[^"]*"|\S+')
_Context = dict[str, Any]


def _indent(width: int, text: str) -> str:
    return "\n".join(" " * width + line for line in text.split("\n"))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "default": lambda instead, value: value or instead,
    "indent": _indent,
    "nindent": lambda width, text: "\n" + _indent(width, text),
    "quote": lambda value: json.dumps(str(value)),
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "toJson": lambda value: json.dumps(value, sort_keys=True, separators=(",", ":")),
    "toYaml": lambda value: yaml.safe_dump(value, default_flow_style=False).rstrip("\n"),
}


def render(chart: Path, release: str, namespace: str, values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the objects that `helm template` would print."""
    described = yaml.safe_load((chart / "Chart.yaml").read_text())
    context: _Context = {
        "Values": yaml.safe_load((chart / "values.yaml").read_text()) | values,
        "Release": {"Name": release, "Namespace": namespace},
        "Chart": {"Name": described["name"], "AppVersion": described["appVersion"]},
        "Files": chart,
    }
    found = []
    for template in sorted((chart / "templates").glob("*.yaml")):
        text = _block(_tokens(template.read_text()), context, context)
        found += [obj for obj in yaml.safe_load_all(text) if obj]
    return found


def _tokens(text: str) -> list[tuple[str, str]]:
    """Return pieces of text and actions in order, with whitespace trimmed as dashes request."""
    tokens, at, trims = [], 0, False
    for action in _ACTION.finditer(text):
        piece = text[at : action.start()]
        piece = piece.lstrip() if trims else piece
        tokens.append(("text", piece.rstrip() if action[1] else piece))
        tokens.append(("action", action[2]))
        at, trims = action.end(), bool(action[3])
    rest = text[at:]
    return [*tokens, ("text", rest.lstrip() if trims else rest)]


def _block(tokens: list[tuple[str, str]], dot: Any, root: _Context, *, is_live: bool = True) -> str:
    """Return the text up to the `else` or `end` of a block, which is removed from the tokens."""
    written = []
    while tokens:
        kind, content = tokens.pop(0)
        if kind == "text":
            written.append(content)
            continue
        word, _, rest = content.partition(" ")
        if word in ("else", "end"):
            tokens.insert(0, (kind, content))
            break
        if word in ("if", "with", "range"):
            value = _value(rest, dot, root) if is_live else None
            inner = list(tokens)
            items = (value or []) if word == "range" else [value if word == "with" else dot]
            for item in items if value else [dot]:
                tokens[:] = inner
                text = _block(tokens, item, root, is_live=is_live and bool(value))
                written.append(text if value else "")
            if tokens.pop(0)[1] == "else":
                text = _block(tokens, dot, root, is_live=is_live and not value)
                written.append("" if value else text)
                tokens.pop(0)
        elif is_live:
            written.append(str(_value(content, dot, root)))
    return "".join(written)


def _value(pipeline: str, dot: Any, root: _Context) -> Any:
    passed: tuple[Any, ...] = ()
    for stage in pipeline.split(" | "):
        first, *others = _WORD.findall(stage)
        arguments = [_term(word, dot, root) for word in others]
        if first == ".Files.Get":
            passed = ((root["Files"] / arguments[0]).read_text().rstrip("\n"),)
        elif first in FUNCTIONS:
            passed = (FUNCTIONS[first](*arguments, *passed),)
        else:
            assert not others, f"no such function: {first}"
            passed = (_term(first, dot, root),)
    return passed[0]


def _term(word: str, dot: Any, root: _Context) -> Any:
    if word.startswith('"'):
        return json.loads(word)
    if word.isdecimal():
        return int(word)
    assert word.startswith("."), f"not understood: {word}"
    value = dot if word == "." else root
    for name in filter(None, word.split(".")):
        value = value[name]
    return value
