"""Control planes for tests, stopped when the test is over."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from kubestow.apiserver import Options
from support.apiserver.running import TOKEN, Client, Running


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    """Starts control planes; by default without controllers and kubelets, so that only the test writes."""
    running: list[Running] = []

    def begin(**options: Any) -> Running:
        chosen = replace(Options(token=TOKEN, controllers=False, kubelets=False), **options)
        running.append(Running(chosen))
        return running[-1]

    yield begin
    for one in running:
        one.stop()


@pytest.fixture
def plane(start: Callable[..., Running]) -> Running:
    """A bare API server."""
    return start()


@pytest.fixture
def client(plane: Running) -> Client:
    """A client of `plane`."""
    return plane.client()
