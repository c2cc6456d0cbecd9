"""What a container does by its command, where that can be told without running it.

`sleep 30`, `true`, `false`, and shell scripts of nothing but these, `exit 1`, and commands that only say something. A
pause image waits forever. Of everything else nobody knows.
"""

import re
import shlex
from typing import Any, NamedTuple

_SHELLS = ("sh", "bash", "ash")
_SAYING = ("echo", "printf", "date", "hostname", ":")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_TIME = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)\Z")
_SEPARATORS = re.compile(r"\s*(?:;|&&|\n)\s*")
_SPECIAL = re.compile(r"[$`|&<>(){}*?]")


class Deed(NamedTuple):
    """How long a container runs, and how it exits."""

    seconds: float
    exit_code: int


def deed(container: dict[str, Any]) -> Deed | None:
    """What a container does; None if that cannot be told."""
    words = [*container.get("command", ()), *container.get("args", ())]
    if not words:
        image = container.get("image", "").rpartition("/")[2]
        return Deed(float("inf"), 0) if re.match(r"pause(?:[:@-]|\Z)", image) else None
    if _base(words[0]) in _SHELLS and len(words) == 3 and words[1] == "-c":
        return _script(words[2])
    done = _statement(words)
    return None if done is None else Deed(*done)


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _script(text: str) -> Deed | None:
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
            return Deed(seconds, int(given) % 256) if given.isdecimal() else None
        done = _statement(words)
        if done is None or code:
            # After a failure it depends on how the statements are joined.
            return None
        seconds += done[0]
        code = done[1]
    return Deed(seconds, code)


def _statement(words: list[str]) -> tuple[float, int] | None:
    name = _base(words[0])
    if name == "sleep" and len(words) == 2:
        if words[1] in ("inf", "infinity"):
            return float("inf"), 0
        time = _TIME.match(words[1])
        return (float(time[1]) * _UNITS[time[2] or "s"], 0) if time else None
    if name in ("true", "false") and len(words) == 1:
        return 0.0, int(name == "false")
    return (0.0, 0) if name in _SAYING else None
