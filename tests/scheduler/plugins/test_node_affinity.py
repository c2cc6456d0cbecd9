"""NodeAffinity: required and preferred nodes, and the affinity that the profile adds."""

from typing import Any

import pytest

from kubestow.api.codec import convert
from kubestow.api.pod import NodeAffinity as Spec
from kubestow.api.pod import Pod
from kubestow.config.plugin_args import NodeAffinityArgs
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.framework.results import SKIP, Narrowed, unresolvable
from kubestow.scheduler.plugins.node_affinity import NodeAffinity
from kubestow.testing.builders import make_node, make_pod
from support.plugins.plugin_calls import cluster_of, hint, make, rejected, scores

BY_POD = unresolvable("node(s) didn't match Pod's node affinity/selector")
BY_PROFILE = unresolvable("node(s) didn't match scheduler-enforced node affinity")
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

NODES = cluster_of(
    make_node("ssd", labels={"disk": "ssd", "cores": "8"}),
    make_node("hdd", labels={"disk": "hdd", "cores": "4"}),
    make_node("bare"),
)


def condition(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, "values": list(values)}


def requiring(*terms: dict[str, Any]) -> Pod:
    return make_pod("p", spec={"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}})


def preferring(*terms: tuple[int, dict[str, Any]]) -> Pod:
    listed = [{"weight": weight, "preference": {"matchExpressions": [term]}} for weight, term in terms]
    return make_pod("p", spec={"affinity": {"nodeAffinity": {PREFERRED: listed}}})


def plugin(**added: Any) -> Any:
    return make(NodeAffinity, NodeAffinityArgs(convert(Spec, added) if added else None))


@pytest.mark.parametrize(
    ("expression", "passing"),
    [
        (condition("disk", "In", "ssd", "nvme"), {"ssd"}),
        (condition("disk", "NotIn", "ssd"), {"hdd", "bare"}),
        (condition("disk", "Exists"), {"ssd", "hdd"}),
        (condition("disk", "DoesNotExist"), {"bare"}),
        (condition("cores", "Gt", "4"), {"ssd"}),
        (condition("cores", "Lt", "8"), {"hdd"}),
        (condition("disk", "In", "unheard-of"), set()),
    ],
)
def test_conditions_on_labels(expression: dict[str, Any], passing: set[str]) -> None:
    """All operators; a node without the label meets only conditions on its absence."""
    found = rejected(plugin(), NODES, requiring({"matchExpressions": [expression]}))
    assert found == {name: BY_POD for name in ("ssd", "hdd", "bare") if name not in passing}


def test_terms_are_alternatives_of_combined_conditions() -> None:
    """One term must match with all of its conditions; an empty term matches nothing."""
    both = {"matchExpressions": [condition("disk", "Exists"), condition("cores", "Gt", "4")]}
    bare = {"matchExpressions": [condition("disk", "DoesNotExist")]}
    assert rejected(plugin(), NODES, requiring(both, bare, {})) == {"hdd": BY_POD}
    assert set(rejected(plugin(), NODES, requiring({}))) == {"ssd", "hdd", "bare"}


def test_node_selectors() -> None:
    """Every label must match, in addition to required terms."""
    pod = make_pod("p", node_selector={"disk": "ssd", "cores": "8"})
    assert set(rejected(plugin(), NODES, pod)) == {"hdd", "bare"}
    assert set(rejected(plugin(), NODES, make_pod("p", node_selector={"disk": "ssd", "cores": "4"}))) == {
        "ssd",
        "hdd",
        "bare",
    }


def test_a_pod_without_affinity_is_skipped() -> None:
    """It is neither filtered nor scored."""
    pod = PodInfo(make_pod("p"))
    assert plugin().pre_filter(pod) is SKIP
    assert plugin().pre_score(pod, NODES.nodes, None) is SKIP


def names(*values: str, operator: str = "In") -> dict[str, Any]:
    return {"matchFields": [condition("metadata.name", operator, *values)]}


@pytest.mark.parametrize(
    ("terms", "narrowed"),
    [
        ([names("ssd")], {"ssd"}),
        ([names("ssd"), names("hdd", "gone")], {"ssd", "hdd", "gone"}),
        ([names("ssd"), {"matchExpressions": [condition("disk", "Exists")]}], None),
        ([names("ssd", operator="NotIn")], None),
    ],
)
def test_terms_with_node_names_narrow_the_nodes(terms: list[dict[str, Any]], narrowed: set[str] | None) -> None:
    """If every term names nodes, only these are filtered."""
    found = plugin().pre_filter(PodInfo(requiring(*terms)))
    assert (set(found.nodes) if isinstance(found, Narrowed) else None) == narrowed


def test_conflicting_node_names_reject_the_pod() -> None:
    """PreFilter rejects the pod as a whole."""
    term = {"matchFields": names("ssd")["matchFields"] + names("hdd")["matchFields"]}
    assert rejected(plugin(), NODES, requiring(term)) == {"": unresolvable("pod affinity terms conflict")}


def test_preferred_terms_add_their_weights() -> None:
    """Scores are relative to the best node; a weight of 0 adds nothing."""
    pod = preferring((10, condition("disk", "Exists")), (30, condition("cores", "Gt", "4")))
    assert scores(plugin(), NODES, pod) == {"ssd": 100, "hdd": 25, "bare": 0}
    assert scores(plugin(), NODES, preferring((5, condition("disk", "In", "none")))) == {"ssd": 0, "hdd": 0, "bare": 0}


def test_added_affinity_of_the_profile() -> None:
    """Required terms apply to all pods and have their own reason; preferred terms are added to the pod's."""
    added = plugin(
        **{
            REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [condition("disk", "Exists")]}]},
            PREFERRED: [{"weight": 1, "preference": {"matchExpressions": [condition("cores", "Gt", "4")]}}],
        }
    )
    assert rejected(added, NODES, make_pod("p")) == {"bare": BY_PROFILE}
    assert rejected(added, NODES, make_pod("p", node_selector={"disk": "ssd"})) == {"hdd": BY_POD, "bare": BY_PROFILE}
    assert scores(added, NODES, make_pod("p")) == {"ssd": 100, "hdd": 0, "bare": 0}
    assert scores(added, NODES, preferring((1, condition("disk", "In", "hdd")))) == {"ssd": 100, "hdd": 100, "bare": 0}


def test_invalid_arguments() -> None:
    """The error names the field."""
    with pytest.raises(ValueError, match=r"addedAffinity\.requiredDuringSchedulingIgnoredDuringExecution"):
        plugin(**{REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [condition("disk", "Resembles", "x")]}]}})


@pytest.mark.parametrize(
    ("before", "after", "worth"),
    [
        (None, {"disk": "ssd"}, True),
        (None, {"disk": "hdd"}, False),
        ({"disk": "hdd"}, {"disk": "ssd"}, True),
        ({"disk": "ssd"}, {"disk": "ssd", "x": "y"}, False),
        ({"disk": "ssd"}, {"disk": "hdd"}, False),
    ],
)
def test_node_events_that_requeue(before: dict[str, str] | None, after: dict[str, str], worth: bool) -> None:
    """A node that is added with the labels, or gets them by an update."""
    old = None if before is None else make_node("n", labels=before)
    pod = make_pod("p", node_selector={"disk": "ssd"})
    assert hint(plugin(), pod, old, make_node("n", labels=after)) is worth


def test_nodes_that_the_profile_excludes_do_not_requeue() -> None:
    """The pod's own affinity does not matter."""
    added = plugin(**{REQUIRED: {"nodeSelectorTerms": [{"matchExpressions": [condition("disk", "Exists")]}]}})
    assert hint(added, make_pod("p"), None, make_node("n")) is False
    assert hint(added, make_pod("p"), None, make_node("n", labels={"disk": "any"})) is True
