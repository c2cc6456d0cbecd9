"""An embedded API server with scheduler processes; tests marked `real` run with every folder in KUBEBUILDER_ASSETS."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.apiserver.fixtures import plane
from support.apiserver.running import Running
from support.integration.process import Process
from support.integration.real_control_plane import folders

__all__ = ["plane"]
"""Fixtures."""

FOLDERS: list[Path | None] = [*folders()] or [None]


@pytest.fixture(scope="session", params=FOLDERS, ids=lambda folder: folder.name if folder else "none")
def assets(request: pytest.FixtureRequest) -> Path:
    """A folder with etcd and kube-apiserver."""
    if request.param is None:
        pytest.skip("KUBEBUILDER_ASSETS names no folder with etcd and kube-apiserver")
    found: Path = request.param
    missing = [name for name in ("etcd", "kube-apiserver") if not (found / name).exists()]
    if missing:
        pytest.fail(f"KUBEBUILDER_ASSETS: {found} has no {' and no '.join(missing)}", pytrace=False)
    return found


@pytest.fixture
def start(plane: Running, tmp_path: Path) -> Iterator[Callable[..., Process]]:
    """Start schedulers that are killed at the end of the test."""
    started: list[Process] = []

    def begin(*flags: str) -> Process:
        kubeconfig = plane.control_plane.kubeconfig_path
        served = () if any("secure-port" in flag for flag in flags) else ("--secure-port=0",)
        started.append(Process(tmp_path, f"scheduler{len(started)}", kubeconfig, *served, *flags))
        return started[-1]

    yield begin
    for process in started:
        process.close()
