"""What selectors select, kept up to date change by change.

A selector that demands a label is filed under that label, so that a changed pod meets only selectors it may match.
"""

from collections.abc import Callable, Iterable

from kubestow.apiserver.controllers.api import Object
from kubestow.apiserver.selectors import LabelSelector
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record
from kubestow.apiserver.store.store import Store

_Label = tuple[str, str, str]
_ANY = ("", "")


class Selection:
    """The pods that each object of one storage selects."""

    def __init__(self, store: Store, storage: str, selector_of: Callable[[Object], LabelSelector | None]) -> None:
        self._store = store
        self._storage = storage
        self._selector_of = selector_of
        self._selectors: dict[Key, tuple[LabelSelector, _Label]] = {}
        self._filed: dict[_Label, dict[Key, None]] = {}
        self._chosen: dict[Key, dict[str, None]] = {}
        self._choosers: dict[Key, tuple[Key, ...]] = {}

    def of_selector(self, change: Change) -> Iterable[Key]:
        """The changed object, whose pods are found anew if it selects others than before."""
        key = (change.record.namespace, change.record.name)
        selector = self._selector_of(change.record.object()) if change.type != "DELETED" else None
        old = self._selectors.get(key)
        if (old[0].conditions if old else None) != (selector.conditions if selector else None):
            self._refile(key, selector)
        return (key,)

    def _refile(self, key: Key, selector: LabelSelector | None) -> None:
        if key in self._selectors:
            label = self._selectors.pop(key)[1]
            del self._filed[label][key]
            if not self._filed[label]:
                del self._filed[label]
        for name in self._chosen.pop(key, ()):
            pod = (key[0], name)
            self._choosers[pod] = tuple(one for one in self._choosers.get(pod, ()) if one != key)
        if selector is None:
            return
        wanted = ((one[0], next(iter(one[2]))) for one in selector.conditions if one[1] == "In" and len(one[2]) == 1)
        label = (key[0], *next(wanted, _ANY))
        self._selectors[key] = (selector, label)
        self._filed.setdefault(label, {})[key] = None
        for record in self._store.collection("pods").by_namespace.get(key[0], {}).values():
            if selector.matches(record.labels):
                self._choose(key, record)

    def _choose(self, key: Key, pod: Record) -> None:
        chosen = self._chosen.setdefault(key, {})
        if pod.name not in chosen:
            chosen[pod.name] = None
            of = (pod.namespace, pod.name)
            self._choosers[of] = (*self._choosers.get(of, ()), key)

    def of_pod(self, change: Change) -> Iterable[Key]:
        """The objects that select a changed pod now, or did before."""
        pod = change.record
        before = self._choosers.get((pod.namespace, pod.name), ())
        if change.type == "DELETED":
            for key in before:
                del self._chosen[key][pod.name]
            self._choosers.pop((pod.namespace, pod.name), None)
            return before
        if change.previous is not None and change.previous.labels == pod.labels:
            return before
        found: dict[Key, None] = dict.fromkeys(before)
        for key in before:
            if not self._selectors[key][0].matches(pod.labels):
                del self._chosen[key][pod.name]
        kept = tuple(key for key in before if pod.name in self._chosen[key])
        self._choosers[(pod.namespace, pod.name)] = kept
        for label in (_ANY, *pod.labels.items()):
            for key in self._filed.get((pod.namespace, *label), ()):
                if self._selectors[key][0].matches(pod.labels):
                    self._choose(key, pod)
                    found[key] = None
        return found

    def pods(self, key: Key) -> list[Record]:
        """The pods an object selects."""
        found = [self._store.get("pods", key[0], name) for name in self._chosen.get(key, ())]
        return [record for record in found if record is not None]
