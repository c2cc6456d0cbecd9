#!/usr/bin/env python3
"""Write the facts at the end of each page in docs/reference/plugins, and the list in its README.md, from the code.

The text above the marker is written by hand and kept.
"""

from pathlib import Path
from typing import Any

import msgspec

from kubestow import config
from kubestow.config.features import Features
from kubestow.config.plugin_args import ARGS_OF_PLUGIN
from kubestow.config.plugin_points import GATE_OF_PLUGIN
from kubestow.scheduler.cluster.events import Action, Registration
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.plugin import POINTS, AdaptsToChanges, NormalizeScore, PodsRead, Signs, pods_read_by
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.registry import points_of
from kubestow.scheduler.in_tree import MODULES, in_tree_registry, plugin_class
from kubestow.scheduler.offline_handle import offline_handle
from kubestow.scheduler.profiles import build_profiles

PAGES = Path(__file__).parents[1] / "docs/reference/plugins"
INDEX = "README"
MARKER = "<!-- What follows is written by scripts/plugin_pages.py from the code. -->\n"

_READS = {
    PodsRead.NOTHING: "nothing",
    PodsRead.SUMS: "sums of requests",
    PodsRead.ALL: "all",
}


def pages() -> dict[str, str]:
    """Return the text of every page, by its name; a page that does not exist counts as empty."""
    profile = _default_profile()
    texts = {name: _by_hand(name) + MARKER + facts(name, profile) for name in sorted(MODULES)}
    return texts | {INDEX: _by_hand(INDEX) + MARKER + _list(profile)}


def path_of(name: str) -> Path:
    """Return the path of a page."""
    return PAGES / f"{name}.md"


def _by_hand(name: str) -> str:
    path = path_of(name)
    return path.read_text().partition(MARKER)[0] if path.exists() else ""


def _default_profile() -> Profile:
    handle = offline_handle(Cluster())
    (profile,) = build_profiles(config.default(), in_tree_registry(), handle, lambda: 0.0).values()
    return profile


def facts(name: str, profile: Profile) -> str:
    """Return the facts about a plugin as a table."""
    args: Any = ARGS_OF_PLUGIN[name]().completed(Features()) if name in ARGS_OF_PLUGIN else None
    plugin = in_tree_registry().make(name, args, offline_handle(Cluster()))
    rows = {
        "Points": ", ".join(_points(plugin)),
        "Enabled by default": _enabled(name, profile),
        "Arguments": _arguments(name, args),
        "Events": _events(plugin),
    }
    if {"filter", "score"} & points_of(plugin):
        rows["Reads of the pods on a node"] = _READS[pods_read_by(plugin)]
        rows["Shares results among equal pods"] = "those it can sign" if isinstance(plugin, Signs) else "no"
    return "\n| | |\n|---|---|\n" + "".join(f"| {title} | {text} |\n" for title, text in rows.items())


def _points(plugin: Any) -> list[str]:
    names = [point[0].upper() + point[1:] for point in POINTS if point in points_of(plugin)]
    if isinstance(plugin, NormalizeScore):
        names.insert(names.index("Score") + 1, "NormalizeScore")
    if isinstance(plugin, AdaptsToChanges):
        names[names.index("PreFilter")] += " (adapts to pods added and removed)"
    return names


def _enabled(name: str, profile: Profile) -> str:
    if MODULES[name].startswith("legacy."):
        return "no: it is here for a [legacy Policy](../../how-to/migrate-from-policy.md)"
    if name not in profile.plugins:
        return f"with the feature gate `{GATE_OF_PLUGIN[name]}`" if name in GATE_OF_PLUGIN else "no"
    weights = {hook.name: weight for hook, weight in zip(profile.score, profile.weights, strict=True)}
    return f"yes, with weight {weights[name]}" if name in weights else "yes"


def _arguments(name: str, args: msgspec.Struct | None) -> str:
    if args is None:
        return "none"
    shown = ", ".join(f"`{field}` ({_default(getattr(args, field))})" for field in args.__struct_fields__)
    return f"{shown}: see [configuration](../configuration.md#{name.lower()})"


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or value == ():
        return "none"
    return str(value) if isinstance(value, int | str) else "as described there"


def _events(plugin: Any) -> str:
    if not hasattr(plugin, "requeue_on"):
        return "none"
    return "; ".join(map(_event, plugin.requeue_on())) or "none"


def _event(registration: Registration) -> str:
    action = registration.event.action
    names = ["Update"] if Action.UPDATE in action else []
    narrow = Action(action & ~Action.UPDATE) if names else action
    names = [_title(flag.name or "") for flag in narrow] + names
    always = "" if registration.hint else " (always)"
    return f"`{registration.event.resource}` {', '.join(names)}{always}"


def _title(name: str) -> str:
    return "".join(word.title() for word in name.split("_"))


def _list(profile: Profile) -> str:
    lines = ["\n| plugin | | points |\n|---|---|---|\n"]
    for name in sorted(MODULES):
        plugin = profile.plugins.get(name) or plugin_class(name)
        text = (plugin.__doc__ or "").partition("\n")[0]
        points = ", ".join(_points(plugin))
        lines.append(f"| [{name}]({name}.md) | {text} | {points} |\n")
    return "".join(lines)


if __name__ == "__main__":
    for page, content in pages().items():
        path_of(page).write_text(content)
