"""The scheduler's writes in a simulation."""

import pytest

from kubestow.api import codec
from kubestow.api.failures import CallError, ConflictError, NotFoundError
from kubestow.api.workloads import PriorityClass
from kubestow.simulator.port import SimulatedApi
from kubestow.simulator.simulation import Simulation
from kubestow.testing import make_object
from support.plugins.platform_plugins import ElasticQuota

CHANGES = {"metadata": {"annotations": {"a": "b"}}}


def test_plugins_patch_objects_in_the_store() -> None:
    """A patch is for one object, not for another of its name; of a kind that is not there, it fails."""
    with Simulation() as simulation:
        api = SimulatedApi(simulation.plane, simulation.bulk, 0.5)
        record = simulation.plane.store.get("priorityclasses.scheduling.k8s.io", "", "system-node-critical")
        assert record is not None
        critical = codec.decode(PriorityClass, record.body)
        patched = simulation.loop.run(api.patch_object(critical, CHANGES, ""))
        assert (patched.metadata.annotations, patched.value) == ({"a": "b"}, critical.value)
        assert simulation.loop.time() == 0.5

        async def refused(obj: object) -> type[Exception]:
            with pytest.raises(CallError) as caught:
                await api.patch_object(obj, CHANGES, "")
            return caught.type

        assert (
            simulation.loop.run(refused(make_object(PriorityClass, "system-node-critical", uid="x"))) is ConflictError
        )
        assert simulation.loop.run(refused(make_object(ElasticQuota, "q"))) is NotFoundError
