"""The incremental index of selected pods equals a full computation."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubestow.apiserver.controllers.selection import Selection
from kubestow.apiserver.selectors import from_object
from kubestow.apiserver.store.records import Change
from kubestow.apiserver.store.store import Store

BUDGETS = "poddisruptionbudgets.policy"
LABELS = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["1", "2"]))
SELECTORS = st.one_of(
    st.none(),
    st.fixed_dictionaries({"matchLabels": LABELS}),
    st.just({"matchExpressions": [{"key": "a", "operator": "Exists"}]}),
    st.just({"matchExpressions": [{"key": "b", "operator": "NotIn", "values": ["1"]}]}),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("pods"), st.sampled_from("pqr"), st.one_of(st.just("delete"), LABELS)),
        st.tuples(st.just(BUDGETS), st.sampled_from("xyz"), st.one_of(st.just("delete"), SELECTORS)),
    ),
    max_size=30,
)


@given(STEPS)
def test_an_index_never_drifts(steps: list[tuple[str, str, Any]]) -> None:
    """After every change it equals a search in all pods, and the keys are those affected."""
    store = Store()
    selection = Selection(store, BUDGETS, lambda one: from_object(one["spec"].get("selector")))
    keys: set[tuple[str, str]] = set()
    for storage, of in ((BUDGETS, selection.selector_keys), ("pods", selection.pod_keys)):

        def notify(change: Change, of: Any = of) -> None:
            keys.update(of(change))

        store.collection(storage).subscribers.append(notify)
    before: dict[str, set[str]] = {}
    for storage, name, what in steps:
        keys.clear()
        current = store.get(storage, "n", name)
        if what == "delete":
            if current is not None:
                store.delete(storage, current)
        elif storage == "pods":
            store.put(storage, {"metadata": {"namespace": "n", "name": name, "uid": name, "labels": what}})
        else:
            spec = {"selector": what} if what is not None else {}
            store.put(storage, {"metadata": {"namespace": "n", "name": name, "uid": name}, "spec": spec})
        found = {}
        for record in store.collection(BUDGETS).objects.values():
            selector = from_object(record.object()["spec"].get("selector"))
            pods = store.collection("pods").objects.values()
            found[record.name] = {one.name for one in pods if selector is not None and selector.matches(one.labels)}
            assert {one.name for one in selection.pods(("n", record.name))} == found[record.name]
            assert found[record.name] == before.get(record.name, set()) or ("n", record.name) in keys
        before = found
