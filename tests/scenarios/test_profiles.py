"""Several profiles in one scheduler: each pod is scheduled by the plugins of its profile."""

from typing import Any

import pytest

from kubestow.api.pod import Pod
from kubestow.scheduler.framework.handle import Handle
from kubestow.testing import make_node, make_pod
from support.scenarios.start import Start

TWO_PROFILES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
podInitialBackoffSeconds: 2
profiles:
- schedulerName: default-scheduler
- schedulerName: packing
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: MostAllocated
        resources: [{name: cpu, weight: 1}]
  plugins:
    filter:
      disabled: [{name: TaintToleration}]
    score:
      disabled: [{name: "*"}]
      enabled: [{name: NodeResourcesFit}]
"""


def test_each_pod_is_scheduled_by_its_profile(start: Start) -> None:
    """One profile spreads, the other one packs; both count each other's pods."""
    harness = start(TWO_PROFILES)
    for number in range(4):
        harness.cluster.add(make_node(f"n{number}", cpu="4"))
    for number in range(4):
        harness.cluster.add(make_pod(f"spread{number}", cpu="1"))
    harness.run_until_idle()
    assert len(set(harness.bindings.values())) == 4
    for number in range(3):
        harness.cluster.add(make_pod(f"packed{number}", cpu="1", scheduler="packing"))
    harness.run_until_idle()
    assert len({harness.cluster.node_of(f"packed{number}") for number in range(3)}) == 1


def test_a_profile_may_lack_a_filter(start: Start) -> None:
    """Taints do not count for the pods of a profile that has disabled them; they do for the others."""
    harness = start(TWO_PROFILES)
    harness.cluster.add(make_node("n1", taints=["busy:NoSchedule"]))
    harness.cluster.add(make_pod("careful"))
    harness.cluster.add(make_pod("careless", scheduler="packing"))
    harness.run_until_idle()
    assert harness.bindings == {"default/careless": "n1"}
    assert harness.place_of("careful") == "unschedulable"


@pytest.mark.parametrize("plugin", ["NodeResourcesFit", "NodeResourcesBalancedAllocation", "NodeAffinity"])
@pytest.mark.parametrize("cpu", ["", "1"])
def test_a_profile_may_score_without_pre_score(start: Start, plugin: str, cpu: str) -> None:
    """Scores that do not need PreScore are computed, also for pods without requests."""
    harness = start(f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    preScore: {{disabled: [{{name: "*"}}]}}
    score: {{disabled: [{{name: "*"}}], enabled: [{{name: {plugin}}}]}}
""")
    harness.cluster.add(make_node("plain", cpu="2", memory="32Gi"))
    harness.cluster.add(make_node("better", cpu="8", memory="32Gi", labels={"liked": "yes"}))
    liking = [{"weight": 1, "preference": {"matchExpressions": [{"key": "liked", "operator": "Exists"}]}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": liking}}
    harness.cluster.add(make_pod("p", cpu=cpu or None, memory="4Gi" if cpu else None, spec={"affinity": affinity}))
    harness.run_until_idle()
    assert not [event.note for event in harness.events.about("p") if event.reason != "Scheduled"]
    if cpu or plugin == "NodeAffinity":
        assert harness.cluster.node_of("p") == "better"


def test_pods_of_other_schedulers_are_ignored(start: Start) -> None:
    """They are counted on their nodes, and never queued."""
    harness = start(TWO_PROFILES)
    harness.cluster.add(make_node("n1", cpu="2"))
    harness.cluster.add(make_pod("foreign", scheduler="elsewhere", cpu="1"))
    harness.cluster.add(make_pod("foreign-bound", scheduler="elsewhere", cpu="2", node="n1"))
    harness.cluster.add(make_pod("ours", cpu="1"))
    harness.run_until_idle()
    assert harness.bindings == {}
    assert harness.place_of("foreign") == ""
    assert harness.place_of("ours") == "unschedulable"


def test_the_configured_backoff_applies(start: Start) -> None:
    """The first retry after an error is after two seconds, rounded up to the end of the second."""
    harness = start(TWO_PROFILES)
    harness.cluster.add(make_node("n1"))
    harness.cluster.add(make_pod("p1"))
    harness.cluster.faults.fail("bind", "Conflict")
    harness.run_until_idle()
    assert harness.cluster.bindings[0].time == 3.0


class Alphabet:
    """Orders pods by their letter; fails for pods without one."""

    name = "Alphabet"

    def __init__(self, args: Any, handle: Handle) -> None:
        pass

    def sort_key(self, pod: Pod, waiting_since: float) -> str:
        return pod.metadata.labels["letter"]


ALPHABETICAL = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- plugins:
    queueSort: {disabled: [{name: PrioritySort}], enabled: [{name: Alphabet}]}
"""


def test_a_pod_without_a_sort_key_is_scheduled(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """It is the last one, and the failure is logged."""
    harness = start(ALPHABETICAL, plugins=[Alphabet])
    for letter in "", "b", "a":
        harness.cluster.add(make_pod(f"p{letter}", labels={"letter": letter} if letter else {}))
    harness.cluster.add(make_node("n1"))
    harness.run_until_idle()
    assert list(harness.bindings) == ["default/pa", "default/pb", "default/p"]
    assert any('plugin="Alphabet" pod="default/p"' in message for message in caplog.messages)
