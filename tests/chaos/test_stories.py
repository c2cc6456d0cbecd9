"""Each story in a short form: no pod is lost or bound twice, no node is overcommitted, at most one scheduler leads."""

from pathlib import Path

import pytest

from support.chaos.planes import Embedded, Plane, Real
from support.chaos.stories import EMBEDDED_ONLY, STORIES
from support.chaos.world import Row
from support.integration.real_control_plane import folders


def embedded(folder: Path) -> Plane:
    return Embedded(folder)


def real(folder: Path) -> Plane:
    return Real(folders()[0], folder)


@pytest.mark.parametrize("name", STORIES)
def test_the_embedded_server(name: str, tmp_path: Path) -> None:
    """At `kubestow apiserver` with its objects on disk."""
    story, _, short = STORIES[name]
    row = Row(name, seed=1)
    story(row, tmp_path / "world", embedded, short)
    assert row.bound > 0
    assert row.faults.total() > 0
    assert row.problems == []


@pytest.mark.real
@pytest.mark.skipif(not folders(), reason="KUBEBUILDER_ASSETS names no folder with kube-apiserver and etcd")
@pytest.mark.parametrize("name", [name for name in STORIES if name not in EMBEDDED_ONLY])
def test_a_real_server(name: str, tmp_path: Path) -> None:
    """At kube-apiserver and etcd."""
    story, _, short = STORIES[name]
    row = Row(name, seed=1)
    story(row, tmp_path / "world", real, short)
    assert row.bound > 0
    assert row.problems == []
