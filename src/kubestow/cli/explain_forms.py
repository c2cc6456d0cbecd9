"""Explanations as JSON and YAML: one is a document by itself, several are a list of `items`."""

from collections.abc import Sequence
from typing import Any

import msgspec

from kubestow.config.writing import yaml_text
from kubestow.decisions.schema import VERSION
from kubestow.explaining.explanation import Explanation, GroupExplanation


def written(explanations: Sequence[Explanation | GroupExplanation], form: str) -> str:
    """The text in the form `json` or `yaml`."""
    trees: list[dict[str, Any]] = [one.tree() for one in explanations]
    whole: Any = trees[0] if len(trees) == 1 else {"version": VERSION, "items": trees}
    if form == "yaml":
        return yaml_text(whole)
    return msgspec.json.format(msgspec.json.encode(whole), indent=2).decode() + "\n"
