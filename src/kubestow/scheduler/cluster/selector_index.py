"""An index of label selectors, by the labels that they require.

A selector that requires `key in (values)` is filed under those pairs, so that only selectors with one of the given
labels are evaluated; the few that require no pair are always evaluated.
"""

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

from kubestow.api.labels import ONE_OF, Selector

Item = TypeVar("Item", bound=Hashable)


def _anchor(selector: Selector) -> list[tuple[str, str]] | None:
    """Return label pairs of which matching labels must have one; None if the selector requires no pair."""
    best: list[tuple[str, str]] | None = None
    for requirement in selector.requirements:
        if requirement.operator in ONE_OF:
            pairs = [(requirement.key, value) for value in requirement.values]
            if best is None or len(pairs) < len(best):
                best = pairs
    return best


class SelectorIndex(Generic[Item]):
    """Items indexed by their selector."""

    def __init__(self) -> None:
        self._anchored: dict[tuple[str, str], dict[Item, Selector]] = {}
        self._unanchored: dict[Item, Selector] = {}

    def copy(self) -> "SelectorIndex[Item]":
        """Return an independent copy."""
        other: SelectorIndex[Item] = SelectorIndex()
        other._anchored = {pair: filed.copy() for pair, filed in self._anchored.items()}
        other._unanchored = self._unanchored.copy()
        return other

    def add(self, selector: Selector, item: Item) -> None:
        pairs = _anchor(selector)
        if pairs is None:
            self._unanchored[item] = selector
            return
        for pair in pairs:
            self._anchored.setdefault(pair, {})[item] = selector

    def remove(self, selector: Selector, item: Item) -> None:
        pairs = _anchor(selector)
        if pairs is None:
            self._unanchored.pop(item, None)
            return
        for pair in pairs:
            filed = self._anchored.get(pair)
            if filed is not None:
                filed.pop(item, None)
                if not filed:
                    del self._anchored[pair]

    def matching(self, labels: Mapping[str, str]) -> Iterator[Item]:
        """Yield the items whose selector matches the labels, each once."""
        for item, selector in self._unanchored.items():
            if selector.matches(labels):
                yield item
        if self._anchored:
            for pair in labels.items():
                filed = self._anchored.get(pair)
                if filed is not None:
                    for item, selector in filed.items():
                        if selector.matches(labels):
                            yield item
