"""Fixtures and manifests for simulations of small clusters."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kubestow.simulator import Simulation
from support.simulator.objects import HEAD, Object, Write


@pytest.fixture
def simulate() -> Iterator[Callable[..., Simulation]]:
    """Create simulations that are closed after the test, with invariants checked."""
    made: list[Simulation] = []

    def make(*objects: Object, **settings: Any) -> Simulation:
        simulation = Simulation(**{"checked": True, **settings})
        made.append(simulation)
        simulation.add(*objects)
        return simulation

    yield make
    for one in made:
        one.close()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a scenario file with the given spec."""

    def make(spec: str, name: str = "s.yaml", *, head: str = HEAD) -> str:
        path = tmp_path / name
        path.write_text(head + "".join(f"  {line}\n" for line in spec.splitlines()))
        return str(path)

    return make
