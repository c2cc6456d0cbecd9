"""Control planes, and scheduler processes at the embedded one."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.apiserver.fixtures import plane
from support.apiserver.running import Running
from support.integration.process import Process
from support.integration.real_control_plane import assets, server

__all__ = ["assets", "plane", "server"]
"""Fixtures."""


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
