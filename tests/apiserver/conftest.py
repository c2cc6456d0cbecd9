"""Control planes for tests, stopped when the test is over."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from support.apiserver.fixtures import plane
from support.apiserver.running import Client, Running, run_bare
from support.apiserver.world import World

__all__ = ["plane"]
"""Fixtures."""


@pytest.fixture
def world(request: pytest.FixtureRequest) -> World:
    """Return a cluster in virtual time with the options of the mark `world`; by default three nodes."""
    mark = request.node.get_closest_marker("world")
    return World(**mark.kwargs) if mark else World()


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    """Starts control planes; by default without controllers and kubelets, so that only the test writes."""
    running: list[Running] = []

    def begin(**options: Any) -> Running:
        running.append(run_bare(**options))
        return running[-1]

    yield begin
    for one in running:
        one.stop()


@pytest.fixture
def client(plane: Running) -> Client:
    """A client of `plane`."""
    return plane.client()
