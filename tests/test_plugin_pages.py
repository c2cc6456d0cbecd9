"""The reference pages of the plugins."""

import re
from pathlib import Path

import pytest

from kubestow.scheduler.in_tree import MODULES, plugin_class
from support.project_scripts import load_script
from support.repository import ROOT

PAGES = ROOT / "docs/reference/plugins"
NAMES = sorted(MODULES)


def test_the_pages_are_current() -> None:
    """What scripts/plugin_pages.py writes is what the pages have."""
    for name, text in load_script("plugin_pages").pages().items():
        assert (PAGES / f"{name}.md").read_text() == text, f"run scripts/plugin_pages.py: {name} has changed"


def test_there_is_a_page_for_each_plugin_and_no_other() -> None:
    """And an index."""
    assert {path.stem for path in PAGES.glob("*.md")} == {*NAMES, "README"}


@pytest.mark.parametrize("name", NAMES)
def test_every_page_says_what_the_plugin_does(name: str) -> None:
    """Its heading is the plugin's name, and there is prose below it, in lines that can be read."""
    by_hand = (PAGES / f"{name}.md").read_text().partition(load_script("plugin_pages").MARKER)[0]
    assert by_hand.startswith(f"# {name}\n\n")
    assert len(by_hand) > 150


def test_every_reason_is_on_a_page() -> None:
    """The texts with which a plugin refuses nodes are in its page, so that one can look them up."""
    missing = []
    for name, module in _modules().items():
        text = (PAGES / f"{name}.md").read_text()
        missing += [reason for reason in _reasons(module) if reason not in text]
    assert missing == []


def _modules() -> dict[str, list[Path]]:
    plugins = ROOT / "src/kubestow/scheduler/plugins"
    found = {}
    for name in NAMES:
        place = (
            plugin_class(name)
            .__module__.removeprefix("kubestow.scheduler.plugins.")
            .removeprefix("legacy.")
            .split(".")[0]
        )
        path = plugins / "legacy" / place if MODULES[name].startswith("legacy.") else plugins / place
        found[name] = sorted(path.glob("*.py")) if path.is_dir() else [path.with_suffix(".py")]
    return found


def _reasons(paths: list[Path]) -> set[str]:
    """Constant texts that begin as reasons about nodes do."""
    text = "".join(path.read_text() for path in paths)
    return set(re.findall(r'"(node\(s\) [^"{}]+[^" ])"', text))
