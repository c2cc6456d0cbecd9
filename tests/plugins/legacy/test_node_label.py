"""NodeLabel: nodes by the presence of labels."""

import pytest

from kubestow.config.plugin_args import NodeLabelArgs
from kubestow.scheduler.framework.results import unresolvable
from kubestow.scheduler.plugins.legacy.node_label import NodeLabel
from kubestow.testing.builders import make_node, make_pod
from plugins.asking import cluster_of, hint, make, refused, scores

REJECTED = unresolvable("node(s) didn't have the requested labels")
NODES = [
    make_node("bare"),
    make_node("zoned", labels={"zone": ""}),
    make_node("retired", labels={"zone": "a", "retired": "2020"}),
]


@pytest.mark.parametrize(
    ("present", "absent", "refusals"),
    [
        ((), (), set()),
        (("zone",), (), {"bare"}),
        ((), ("zone",), {"zoned", "retired"}),
        (("zone",), ("retired",), {"bare", "retired"}),
        (("zone", "unheard-of"), (), {"bare", "zoned", "retired"}),
    ],
)
def test_labels_that_must_or_must_not_be_there(
    present: tuple[str, ...], absent: tuple[str, ...], refusals: set[str]
) -> None:
    """Whatever their values, the empty one included."""
    plugin = make(NodeLabel, NodeLabelArgs(present, absent))
    assert refused(plugin, cluster_of(*NODES), make_pod("p")) == dict.fromkeys(refusals, REJECTED)


@pytest.mark.parametrize(
    ("present", "absent", "wanted"),
    [
        ((), (), [0, 0, 0]),
        (("zone",), (), [0, 100, 100]),
        (("zone",), ("retired",), [50, 100, 50]),
        (("zone", "retired"), ("x",), [33, 66, 100]),
    ],
)
def test_the_score_is_the_part_of_wishes_fulfilled(
    present: tuple[str, ...], absent: tuple[str, ...], wanted: list[int]
) -> None:
    """Each label counts the same, rounded down."""
    args = NodeLabelArgs(presentLabelsPreference=present, absentLabelsPreference=absent)
    assert list((scores(make(NodeLabel, args), cluster_of(*NODES), make_pod("p")) or {}).values()) == wanted


@pytest.mark.parametrize(("old", "new", "worth"), [(None, 1, True), (None, 0, False), (0, 1, True), (2, 1, True)])
def test_nodes_worth_another_attempt(old: int | None, new: int, worth: bool) -> None:
    """One that comes with the right labels, or gets them."""
    plugin = make(NodeLabel, NodeLabelArgs(("zone",), ("retired",)))
    before = None if old is None else make_node("n", labels=NODES[old].metadata.labels)
    after = make_node("n", labels=NODES[new].metadata.labels)
    assert hint(plugin, make_pod("p"), before, after) is worth
