"""The watched resources and their paths."""

import pytest

from kubestow.api.meta import ObjectMeta
from kubestow.api.node import Node
from kubestow.client.resources import NODES, PODS, WATCHED, Resource, key_of, watched_by_gates
from support.scenarios.gangs import TREE_GATES, features

PATHS = """
/api/v1/pods
/api/v1/nodes
/api/v1/namespaces
/api/v1/services
/api/v1/replicationcontrollers
/api/v1/persistentvolumes
/api/v1/persistentvolumeclaims
/apis/apps/v1/replicasets
/apis/apps/v1/statefulsets
/apis/policy/v1/poddisruptionbudgets
/apis/storage.k8s.io/v1/storageclasses
/apis/storage.k8s.io/v1/csinodes
/apis/storage.k8s.io/v1/csidrivers
/apis/storage.k8s.io/v1/csistoragecapacities
/apis/storage.k8s.io/v1/volumeattachments
/apis/resource.k8s.io/v1/resourceclaims
/apis/resource.k8s.io/v1/resourceslices
/apis/resource.k8s.io/v1/deviceclasses
"""


def test_same_paths_as_kube_scheduler() -> None:
    """Every resource that kube-scheduler watches by default is present; of others, those that need a feature."""
    assert {resource.path for resource in WATCHED} == set(PATHS.split())
    assert not set(watched_by_gates(features(*TREE_GATES))) & set(WATCHED)


def test_only_pods_are_selected() -> None:
    """Finished pods are excluded; all other resources are watched completely."""
    selected = {found.plural for found in (*WATCHED, *watched_by_gates(features(*TREE_GATES))) if found.field_selector}
    assert selected == {"pods"}
    assert PODS.url({}) == "/api/v1/pods?fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"
    assert NODES.url({"limit": "", "watch": "true"}) == "/api/v1/nodes?watch=true"


@pytest.mark.parametrize(("group", "name"), [("", "things"), ("example.com", "things.example.com")])
def test_names_in_messages(group: str, name: str) -> None:
    """Messages name a resource as kubectl does."""
    assert Resource(group, "v1", "things", Node).name == name


def test_keys() -> None:
    """The key of an object with a namespace contains it."""
    assert (key_of(ObjectMeta("a", "ns")), key_of(ObjectMeta("a"))) == ("ns/a", "a")
