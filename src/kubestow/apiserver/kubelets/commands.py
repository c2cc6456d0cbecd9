"""Prediction of the run time and exit code of a container from its command, without running it.

It covers `sleep 30`, `true`, `false`, and shell scripts that consist of these, `exit 1`, and commands that only print.
A pause image runs forever. The effect of all other commands is unknown.
"""

import re
import shlex
from typing import Any, NamedTuple

_SHELLS = ("sh", "bash", "ash")
_PRINTING = ("echo", "printf", "date", "hostname", ":")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_TIME = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)\Z")
_SEPARATORS = re.compile(r"\s*(?:;|&&|\n)\s*")
_SPECIAL = re.compile(r"[$`|&<>(){}*?]")


class Prediction(NamedTuple):
    """The run time and exit code of a container."""

    seconds: float
    exit_code: int


def predict(container: dict[str, Any]) -> Prediction | None:
    """Predict the run time and exit code of a container; None if they are unknown."""
    words = [*container.get("command", ()), *container.get("args", ())]
    if not words:
        image = container.get("image", "").rpartition("/")[2]
        return Prediction(float("inf"), 0) if re.match(r"pause(?:[:@-]|\Z)", image) else None
    if _base(words[0]) in _SHELLS and len(words) == 3 and words[1] == "-c":
        return _script(words[2])
    result = _statement(words)
    return None if result is None else Prediction(*result)


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _script(text: str) -> Prediction | None:
    seconds = 0.0
    code = 0
    for part in _SEPARATORS.split(text.strip()):
        if not part:
            continue
        if _SPECIAL.search(part):
            return None
        try:
            words = shlex.split(part)
        except ValueError:
            return None
        if words[0] == "exit" and len(words) <= 2:
            given = words[1] if len(words) == 2 else str(code)
            return Prediction(seconds, int(given) % 256) if given.isdecimal() else None
        result = _statement(words)
        if result is None or code:
            # After a failure, the effect depends on the separator.
            return None
        seconds += result[0]
        code = result[1]
    return Prediction(seconds, code)


def _statement(words: list[str]) -> tuple[float, int] | None:
    name = _base(words[0])
    if name == "sleep" and len(words) == 2:
        if words[1] in ("inf", "infinity"):
            return float("inf"), 0
        time = _TIME.match(words[1])
        return (float(time[1]) * _UNITS[time[2] or "s"], 0) if time else None
    if name in ("true", "false") and len(words) == 1:
        return 0.0, int(name == "false")
    return (0.0, 0) if name in _PRINTING else None
