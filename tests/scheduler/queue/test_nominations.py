"""Pods that are nominated to a node."""

from typing import Any

import pytest

from kubestow.api.pod import Pod, PodStatus
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.queue.nominator import Nominator


def _on(nominator: Nominator, node: str) -> list[str]:
    return [info.name for info in nominator.nominated_on(node)]


def _with_status(kit: Any, pod: Pod, node: str) -> Pod:
    changed: Pod = kit.changed(pod, status=PodStatus(nominatedNodeName=node))
    return changed


def test_pods_are_listed_in_the_order_they_were_nominated(kit: Any) -> None:
    """Nominating a pod again moves it to the end, and to its new node."""
    nominator = Nominator()
    for name in ("a", "b", "c"):
        nominator.nominate(kit.pod(name), "n1")
    nominator.nominate(kit.pod("a"), "n1")
    nominator.nominate(kit.pod("b"), "n2")
    assert _on(nominator, "n1") == ["c", "a"]
    assert _on(nominator, "n2") == ["b"]
    assert len(nominator) == 3


def test_without_a_node_the_status_decides(kit: Any) -> None:
    """A pod whose status names no node is not nominated."""
    nominator = Nominator()
    nominator.nominate(kit.pod("a", nominated="n1"))
    nominator.nominate(kit.pod("b"))
    assert _on(nominator, "n1") == ["a"]
    assert len(nominator) == 1


def test_an_empty_name_clears_the_nomination(kit: Any) -> None:
    """A nomination that turned out useless is removed."""
    nominator = Nominator()
    nominator.nominate(kit.pod("a", nominated="n1"))
    nominator.nominate(kit.pod("a", nominated="n1"), "")
    assert list(nominator.nodes) == []


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [("", "", "ours"), ("", "n1", "n1"), ("n1", "n2", "n2"), ("n1", "", None), ("n1", "n1", "n1")],
)
def test_updates_and_nominations_of_the_scheduler(kit: Any, before: str, after: str, expected: str | None) -> None:
    """The scheduler's nomination is kept until the API server reports another one, or removes one."""
    nominator = Nominator()
    pod = kit.pod("a", nominated=before)
    nominator.nominate(pod, "ours")
    nominator.update(pod, PodInfo(_with_status(kit, pod, after)))
    assert list(nominator.nodes) == ([] if expected is None else [expected])


def test_updates_replace_the_pod(kit: Any) -> None:
    """The nominator returns the latest version of the pod."""
    nominator = Nominator()
    old = kit.pod("a", nominated="n1")
    nominator.nominate(old)
    new = kit.changed(old, priority=7)
    nominator.update(old, PodInfo(new))
    assert [info.pod for info in nominator.nominated_on("n1")] == [new]
