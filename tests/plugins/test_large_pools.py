"""Pools of very many slices: what has to be looked at grows with them, not with their square."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kubestow.cluster.devices.pools import Pool
from kubestow.cluster.devices.state import Devices
from kubestow.cluster.state import Cluster
from kubestow.testing import make_node
from plugins.device_world import allocated, device, device_class, device_slice

MANY = 60


def slices(**spec: Any) -> list[Any]:
    """Of one pool, each for a node of its own or for all."""
    return [
        device_slice(
            "" if spec else f"n{number}", [device(f"d{number}")], name=f"s{number:03}", pool="one", slices=MANY, **spec
        )
        for number in range(MANY)
    ]


@pytest.mark.parametrize("spec", [{}, {"allNodes": True}])
def test_one_pool_for_all_nodes(spec: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices and claims come one by one; rows are looked at once, when somebody asks."""
    calls: Counter[str] = Counter()

    def counted(of: type, name: str) -> None:
        original: Callable[..., Any] = getattr(of, name)

        def count(*args: Any) -> Any:
            calls[name] += 1
            return original(*args)

        monkeypatch.setattr(of, name, count)

    counted(Devices, "_touch")
    counted(Pool, "_view")
    cluster = Cluster()
    cluster.set_object(device_class())
    for number in range(MANY):
        cluster.set_node(make_node(f"n{number}"))
    cluster.devices.situations(np.arange(MANY))
    for entry in slices(**spec):
        cluster.set_object(entry)
    for number in range(MANY):
        cluster.set_object(allocated(f"c{number}", "one", f"d{number}"))
    found = cluster.devices.situations(np.arange(MANY))
    assert len(set(found.tolist())) == 1
    assert calls["_touch"] <= 3 * MANY
    assert calls["_view"] == (1 if spec else MANY)
