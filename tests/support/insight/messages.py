"""The messages with which in-tree plugins, cycles and bindings can reject a pod, collected from their source."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import kubestow.scheduler as scheduler

_FOLDER = Path(scheduler.__file__).parent
_PARTS = ("plugins", "cycle", "binding")
_REJECTING = {"unschedulable", "unresolvable", "Rejection", "Wait", "AllocationError", "AllocationTimeoutError"}
_RAISING = ("ClaimError", "BindingError", "PlacementError")


def rejection_messages() -> dict[str, re.Pattern[str]]:
    """Return each message, with its place, as a pattern; plugins of old policies are left out."""
    found: dict[str, re.Pattern[str]] = {}
    for path in sorted(path for part in _PARTS for path in (_FOLDER / part).rglob("*.py")):
        if "legacy" in path.parts:
            continue
        tree = ast.parse(path.read_text())
        for text in _texts(tree):
            if re.search(r"[^.*\\ ]", text):
                found[f"{path.relative_to(_FOLDER)}: {text}"] = re.compile(text)
    return found


def _texts(tree: ast.Module) -> Iterator[str]:
    constants = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and _is_rejection(node.func):
            for argument in node.args:
                for part in argument.elts if isinstance(argument, ast.Tuple) else [argument]:
                    value = constants.get(part.id, part) if isinstance(part, ast.Name) else part
                    yield from _patterns(value)
        elif isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "_REASONS":
            yield from (text for value in getattr(node.value, "values", ()) for text in _patterns(value))


def _is_rejection(function: ast.expr) -> bool:
    """Return whether a function makes a rejection, or an exception whose text becomes one."""
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    return name in _REJECTING or name.endswith(_RAISING)


def _patterns(value: ast.expr) -> Iterator[str]:
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        yield re.escape(value.value)
    elif isinstance(value, ast.JoinedStr):
        yield "".join(re.escape(str(p.value)) if isinstance(p, ast.Constant) else ".*" for p in value.values)
