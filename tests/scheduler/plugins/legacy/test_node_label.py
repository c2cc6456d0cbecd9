"""NodeLabel: filters and scores nodes by the presence of labels."""

import pytest

from kubestow.config.plugin_args import NodeLabelArgs
from kubestow.scheduler.framework.results import unresolvable
from kubestow.scheduler.plugins.legacy.node_label import NodeLabel
from kubestow.testing.builders import make_node, make_pod
from support.plugins.plugin_calls import cluster_of, hint, make, rejected, scores

REJECTED = unresolvable("node(s) didn't have the requested labels")
NODES = [
    make_node("bare"),
    make_node("zoned", labels={"zone": ""}),
    make_node("retired", labels={"zone": "a", "retired": "2020"}),
]


@pytest.mark.parametrize(
    ("present", "absent", "rejections"),
    [
        ((), (), set()),
        (("zone",), (), {"bare"}),
        ((), ("zone",), {"zoned", "retired"}),
        (("zone",), ("retired",), {"bare", "retired"}),
        (("zone", "unheard-of"), (), {"bare", "zoned", "retired"}),
    ],
)
def test_labels_that_must_be_present_or_absent(
    present: tuple[str, ...], absent: tuple[str, ...], rejections: set[str]
) -> None:
    """The value does not matter, and may be empty."""
    plugin = make(NodeLabel, NodeLabelArgs(present, absent))
    assert rejected(plugin, cluster_of(*NODES), make_pod("p")) == dict.fromkeys(rejections, REJECTED)


@pytest.mark.parametrize(
    ("present", "absent", "wanted"),
    [
        ((), (), [0, 0, 0]),
        (("zone",), (), [0, 100, 100]),
        (("zone",), ("retired",), [50, 100, 50]),
        (("zone", "retired"), ("x",), [33, 66, 100]),
    ],
)
def test_the_score_is_the_fraction_of_satisfied_preferences(
    present: tuple[str, ...], absent: tuple[str, ...], wanted: list[int]
) -> None:
    """Each label has the same weight; the result is rounded down."""
    args = NodeLabelArgs(presentLabelsPreference=present, absentLabelsPreference=absent)
    assert list((scores(make(NodeLabel, args), cluster_of(*NODES), make_pod("p")) or {}).values()) == wanted


@pytest.mark.parametrize(("old", "new", "worth"), [(None, 1, True), (None, 0, False), (0, 1, True), (2, 1, True)])
def test_node_events_that_requeue(old: int | None, new: int, worth: bool) -> None:
    """A node that is added with the required labels, or gets them."""
    plugin = make(NodeLabel, NodeLabelArgs(("zone",), ("retired",)))
    before = None if old is None else make_node("n", labels=NODES[old].metadata.labels)
    after = make_node("n", labels=NODES[new].metadata.labels)
    assert hint(plugin, make_pod("p"), before, after) is worth
