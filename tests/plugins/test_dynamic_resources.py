"""DynamicResources: pods that claim devices are refused clearly; others are let through."""

from typing import Any

from framework.troupe import evaluation_of, nodes
from kubestow.cluster.pods import PodInfo
from kubestow.framework.results import SKIP, Code
from kubestow.plugins.dynamic_resources import DynamicResources
from kubestow.testing.builders import make_node, make_pod
from plugins.asking import cluster_of, make, scores

CLAIMING = make_pod("p", spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "mine"}]})


def test_pods_without_claims() -> None:
    """Are not filtered, and every node scores 0."""
    plugin, cluster = make(DynamicResources), cluster_of(make_node("a"), make_node("b"))
    assert plugin.pre_filter(PodInfo(make_pod("p"))) is SKIP
    assert scores(plugin, cluster, make_pod("p")) == {"a": 0, "b": 0}


def test_pods_with_claims() -> None:
    """Are refused as a whole, and told why, rather than placed where their devices are not."""
    refusal = make(DynamicResources).pre_filter(PodInfo(CLAIMING))
    assert refusal.code is Code.UNRESOLVABLE
    assert "spec.resourceClaims" in refusal.message
    assert make(DynamicResources).sign(PodInfo(CLAIMING)) is None


def test_nothing_to_give_up() -> None:
    """When a pod fits nowhere, there is no claim that could be exchanged."""
    plugin: Any = make(DynamicResources)
    evaluation = evaluation_of(nodes(1), plugin)
    evaluation.pre_filter()
    result = plugin.post_filter(evaluation.pod, evaluation)
    assert (result.code, result.message) == (Code.UNSCHEDULABLE, "no new claims to deallocate")
