"""The reference page docs/reference/configuration.md."""

import re

import msgspec
import pytest

from kubestow import config
from kubestow.config import configuration, plugin_args
from support.repository import ROOT

PAGE = (ROOT / "docs/reference/configuration.md").read_text()
SECTIONS = [
    kind
    for module in (configuration, plugin_args)
    for kind in vars(module).values()
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__module__ == module.__name__
]


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.__name__)
def test_every_field_is_described(section: type[msgspec.Struct]) -> None:
    """Each field of each section is on the page."""
    words = set(re.findall(r"\w+", " ".join(re.findall(r"`[^`\n]+`", PAGE))))
    assert set(section.__struct_fields__) <= words


def test_every_plugin_with_arguments_has_a_heading() -> None:
    """Each in-tree plugin that takes arguments is on the page."""
    headings = re.findall(r"^### (\w+)$", PAGE, re.MULTILINE)
    assert headings == sorted(plugin_args.ARGS_OF_PLUGIN)


def test_the_examples_are_valid() -> None:
    """The example file is a valid configuration, and so are the plugins of the other one."""
    whole, plugins = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    loaded = config.load(whole)
    assert [plugin.name for plugin in loaded.profiles[0].plugins.score.disabled] == ["ImageLocality"]
    indented = "".join(f"  {line}\n" for line in plugins.splitlines())
    config.load(f"{whole.partition('profiles:')[0]}profiles:\n-\n{indented}")
