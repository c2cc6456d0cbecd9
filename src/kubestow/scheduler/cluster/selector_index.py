"""Which of many label selectors may match given labels.

A selector that demands `key in (values)` is filed under those pairs, so that only selectors with a pair among the
labels are tried; the few that demand no pair are always tried.
"""

from collections.abc import Hashable, Iterator, Mapping
from typing import Generic, TypeVar

from kubestow.api.labels import ONE_OF, Selector

Item = TypeVar("Item", bound=Hashable)


def _anchor(selector: Selector) -> list[tuple[str, str]] | None:
    """Label pairs of which matching labels must hold one; None if there is no such rule."""
    best: list[tuple[str, str]] | None = None
    for requirement in selector.requirements:
        if requirement.operator in ONE_OF:
            pairs = [(requirement.key, value) for value in requirement.values]
            if best is None or len(pairs) < len(best):
                best = pairs
    return best


class SelectorIndex(Generic[Item]):
    """Items filed by their selector."""

    def __init__(self) -> None:
        self._anchored: dict[tuple[str, str], dict[Item, Selector]] = {}
        self._loose: dict[Item, Selector] = {}

    def copy(self) -> "SelectorIndex[Item]":
        """Return an independent copy."""
        other: SelectorIndex[Item] = SelectorIndex()
        other._anchored = {pair: filed.copy() for pair, filed in self._anchored.items()}
        other._loose = self._loose.copy()
        return other

    def add(self, selector: Selector, item: Item) -> None:
        pairs = _anchor(selector)
        if pairs is None:
            self._loose[item] = selector
            return
        for pair in pairs:
            self._anchored.setdefault(pair, {})[item] = selector

    def remove(self, selector: Selector, item: Item) -> None:
        pairs = _anchor(selector)
        if pairs is None:
            self._loose.pop(item, None)
            return
        for pair in pairs:
            filed = self._anchored.get(pair)
            if filed is not None:
                filed.pop(item, None)
                if not filed:
                    del self._anchored[pair]

    def matching(self, labels: Mapping[str, str]) -> Iterator[Item]:
        """Items whose selector matches the labels, each once."""
        for item, selector in self._loose.items():
            if selector.matches(labels):
                yield item
        if self._anchored:
            for pair in labels.items():
                filed = self._anchored.get(pair)
                if filed is not None:
                    for item, selector in filed.items():
                        if selector.matches(labels):
                            yield item
