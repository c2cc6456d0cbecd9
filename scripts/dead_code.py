#!/usr/bin/env python3
"""Find code in src that nothing in src or scripts uses: code that only tests use is dead, too.

`make check` runs it. It finds uses by name alone (vulture), so its findings are certain, except for names that external
code calls: these are listed in the tables below.
"""

import re
import sys
from pathlib import Path

from vulture import Vulture  # type: ignore[import-untyped]

ROOT = Path(__file__).parents[1]

PUBLIC = (
    "src/kubestow/plugin/",
    "src/kubestow/testing/",
    "src/kubestow/scheduler/cluster/node_columns.py",
    "src/kubestow/scheduler/cluster/pod_index.py",
    "src/kubestow/scheduler/framework/handle.py",
    "src/kubestow/scheduler/framework/plugin.py",
    "src/kubestow/scheduler/framework/polling.py",
    "src/kubestow/scheduler/framework/scope.py",
    "src/kubestow/scheduler/plugins/",
    "src/kubestow/simulator/in_memory/",
    "src/kubestow/simulator/simulation.py",
    "src/kubestow/simulator/contents.py",
)
"""Public APIs for plugin authors and for simulations."""

CALLED_BY_OTHERS = {
    "asyncio": ("connection_lost", "data_received", "pause_writing", "resume_writing"),
    "httptools": (r"on_\w+",),
    "click": ("exit_code", "format_commands", "format_options", "get_command", "list_plugins", "translate"),
    "numpy": ("writeable",),
    "re2": ("log_errors",),
    "rich": ("no_wrap",),
    "yaml": ("ignore_aliases",),
    "enum": ("_value_",),
    "Python, for a name that a package lacks": ("__getattr__",),
    "Python, for a class that is derived": ("__init_subclass__",),
    "the framework, where a plugin has it": ("join_score_states", "join_states", "with_changes"),
    "plugins": ("allow", "get_json", "POD_GROUP"),
    "users of kubestow.api": ("parse_selector",),
    "plugins that claim devices": ("create_resource_claim", "get_resource_claim"),
    "recordings, by the name of an operation": ("_advance", "_bindFail", "_deleteNode", "_deletePod"),
}
"""Patterns of names, by caller."""

CALLED_BY_EXPRESSIONS = ["@define"]
"""Decorators of functions that are called by their names in CEL."""

# Fields of structs describe objects, whether they are read or not.
_FIELD = re.compile(r"\s+\w+: ")


def findings() -> list[str]:
    """Return a line for each unused item."""
    vulture = Vulture(ignore_names=[], ignore_decorators=CALLED_BY_EXPRESSIONS)
    vulture.scavenge([str(ROOT / "src"), str(ROOT / "scripts")])
    allowed = re.compile("|".join(pattern for patterns in CALLED_BY_OTHERS.values() for pattern in patterns))
    found = []
    for item in vulture.get_unused_code(min_confidence=60):
        path = Path(item.filename).relative_to(ROOT)
        line = (ROOT / path).read_text().splitlines()[item.first_lineno - 1]
        is_field = item.typ == "variable" and _FIELD.match(line)
        if not (str(path).startswith(PUBLIC) or is_field or allowed.fullmatch(item.name)):
            found.append(f"{path}:{item.first_lineno}: {item.typ} {item.name} is never used")
    return found


if __name__ == "__main__":
    lines = findings()
    print("\n".join(lines), end="\n" if lines else "")
    sys.exit(bool(lines))
