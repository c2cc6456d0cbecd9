"""Incremental index of the pods that selectors match.

A selector that requires a label value is indexed by it, so that a changed pod is compared with few selectors only.
"""

from collections.abc import Callable, Iterable

from kubestow.api.labels import ONE_OF, Selector
from kubestow.apiserver.controllers.api import Object
from kubestow.apiserver.store.collection import Key
from kubestow.apiserver.store.records import Change, Record
from kubestow.apiserver.store.store import Store

_Label = tuple[str, str, str]
_ANY = ("", "")


class Selection:
    """The pods that the selector of each object in one storage matches."""

    def __init__(self, store: Store, storage: str, selector_of: Callable[[Object], Selector | None]) -> None:
        self._store = store
        self._storage = storage
        self._selector_of = selector_of
        self._selectors: dict[Key, tuple[Selector, _Label]] = {}
        self._by_label: dict[_Label, dict[Key, None]] = {}
        self._selected: dict[Key, dict[str, None]] = {}
        self._selecting: dict[Key, tuple[Key, ...]] = {}

    def selector_keys(self, change: Change) -> Iterable[Key]:
        """Return the key of the changed object; its pods are searched again if its selector changed."""
        key = (change.record.namespace, change.record.name)
        selector = self._selector_of(change.record.object()) if change.type != "DELETED" else None
        old = self._selectors.get(key)
        if (old[0] if old else None) != selector:
            self._replace_selector(key, selector)
        return (key,)

    def _replace_selector(self, key: Key, selector: Selector | None) -> None:
        if key in self._selectors:
            label = self._selectors.pop(key)[1]
            del self._by_label[label][key]
            if not self._by_label[label]:
                del self._by_label[label]
        for name in self._selected.pop(key, ()):
            pod = (key[0], name)
            self._selecting[pod] = tuple(one for one in self._selecting.get(pod, ()) if one != key)
        if selector is None:
            return
        exact = (one for one in selector.requirements if one.operator in ONE_OF and len(one.values) == 1)
        label = (key[0], *next(((one.key, one.values[0]) for one in exact), _ANY))
        self._selectors[key] = (selector, label)
        self._by_label.setdefault(label, {})[key] = None
        for record in self._store.collection("pods").by_namespace.get(key[0], {}).values():
            if selector.matches(record.labels):
                self._select(key, record)

    def _select(self, key: Key, pod: Record) -> None:
        selected = self._selected.setdefault(key, {})
        if pod.name not in selected:
            selected[pod.name] = None
            pod_key = (pod.namespace, pod.name)
            self._selecting[pod_key] = (*self._selecting.get(pod_key, ()), key)

    def pod_keys(self, change: Change) -> Iterable[Key]:
        """Return the keys of the objects whose selectors match a changed pod, or matched it before."""
        pod = change.record
        before = self._selecting.get((pod.namespace, pod.name), ())
        if change.type == "DELETED":
            for key in before:
                del self._selected[key][pod.name]
            self._selecting.pop((pod.namespace, pod.name), None)
            return before
        if change.previous is not None and change.previous.labels == pod.labels:
            return before
        found: dict[Key, None] = dict.fromkeys(before)
        for key in before:
            if not self._selectors[key][0].matches(pod.labels):
                del self._selected[key][pod.name]
        kept = tuple(key for key in before if pod.name in self._selected[key])
        self._selecting[(pod.namespace, pod.name)] = kept
        for label in (_ANY, *pod.labels.items()):
            for key in self._by_label.get((pod.namespace, *label), ()):
                if self._selectors[key][0].matches(pod.labels):
                    self._select(key, pod)
                    found[key] = None
        return found

    def pods(self, key: Key) -> list[Record]:
        """Return the pods that an object selects."""
        found = [self._store.get("pods", key[0], name) for name in self._selected.get(key, ())]
        return [record for record in found if record is not None]
