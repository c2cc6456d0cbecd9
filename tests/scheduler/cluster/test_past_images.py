"""The size of an image is that of the first node that had it, also in the past."""

import pytest

from kubestow.scheduler.cluster.history import History
from kubestow.scheduler.cluster.past import Past
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.queue.nominator import Nominator
from kubestow.testing import make_node

LARGE, SMALL, OTHER = 900, 200, 300


def image_history() -> tuple[Cluster, History, list[dict[str, int]]]:
    """Return a cluster in which nodes with the same image are added, changed and removed, and the sizes by revision."""
    history = History()
    cluster = Cluster(history=history)
    sizes: list[dict[str, int]] = [{}]

    def note() -> None:
        sizes.extend([{}] * (history.revision - len(sizes)) + [cluster.images.sizes()])

    for name, size in (("a", LARGE), ("b", SMALL), ("c", OTHER)):
        cluster.set_node(make_node(name, images={"i": size}))
        note()
    cluster.remove_node("a")
    note()
    for name, size in (("b", SMALL), ("c", OTHER)):
        cluster.set_node(make_node(name, labels={"changed": "true"}, images={"i": size}))
        note()
    for name in ("b", "c"):
        cluster.remove_node(name)
        note()
    cluster.set_node(make_node("c", images={"i": OTHER}))
    note()
    cluster.set_node(make_node("a", images={"i": LARGE}))
    note()
    return cluster, history, sizes


@pytest.mark.parametrize("is_backward", [False, True])
def test_sizes_at_each_revision(*, is_backward: bool) -> None:
    """The result does not depend on the order in which the copy adds nodes, or on its previous revision."""
    cluster, history, sizes = image_history()
    past = Past(cluster, Nominator(), history)
    known = [revision for revision, found in enumerate(sizes) if found]
    assert {sizes[revision]["i"] for revision in known} == {LARGE, OTHER}
    for revision in sorted(known, reverse=is_backward):
        past.go_to(revision)
        assert past.cluster.images.sizes() == sizes[revision]
