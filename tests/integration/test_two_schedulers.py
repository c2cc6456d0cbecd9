"""Two schedulers with one lease: one schedules, the other waits, and they never schedule at the same time."""

from kubestow.api.failures import LeaseLostError
from support.client.virtualtime import run
from support.integration.cluster import (
    Cluster,
    Instance,
    eventually,
    node,
    pod,
    running_cluster,
    running_scheduler,
    settings,
)


def _only_leaders_bound(cluster: Cluster) -> None:
    assert cluster.bindings
    assert all(binding.sender == binding.leader for binding in cluster.bindings), cluster.bindings


async def _leading(cluster: Cluster, name: str) -> None:
    await eventually(lambda: cluster.leader_now() == name)


def test_one_leads_and_the_other_has_all_objects() -> None:
    """The second has all objects in its cache, and binds nothing."""

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1"), *(pod(f"p{i}") for i in range(5)))
            async with running_scheduler(cluster, settings(elects=True), name="one"):
                await _leading(cluster, "one")
                async with running_scheduler(cluster, settings(elects=True), name="two") as two:
                    await eventually(cluster.all_bound)
                    await eventually(two.live.synced.is_set)
                    await eventually(lambda: two.live.core.cluster.pod_count == 5)
                    assert not two.live.leads
            assert {binding.sender for binding in cluster.bindings} == {"one"}
            _only_leaders_bound(cluster)

    run(main())


def test_delayed_caches_stay_empty_until_it_leads() -> None:
    """With delayCacheUntilActive the waiting instance watches nothing until it leads."""

    async def main() -> None:
        delayed = settings(elects=True, delayCacheUntilActive=True)
        async with running_cluster() as cluster:
            await cluster.add(node("n1"))
            async with running_scheduler(cluster, delayed, name="one") as one:
                await _leading(cluster, "one")
                async with running_scheduler(cluster, delayed, name="two") as two:
                    await cluster.add(pod("a"))
                    await eventually(cluster.all_bound)
                    assert not two.live.synced.is_set()
                    assert two.live.core.cluster.nodes.count == 0
                    await one.stop()
                    await cluster.add(pod("b"))
                    await eventually(cluster.all_bound)
            assert [binding.sender for binding in cluster.bindings] == ["one", "two"]

    run(main())


def test_a_graceful_stop_hands_over_at_once() -> None:
    """The lease is released, so that the other need not wait until it expires."""

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1"))
            async with (
                running_scheduler(cluster, settings(elects=True), name="one") as one,
            ):
                await _leading(cluster, "one")
                async with running_scheduler(cluster, settings(elects=True), name="two") as two:
                    await cluster.add(pod("a"))
                    await eventually(lambda: two.live.core.cluster.pod_count == 1)
                    await one.stop()
                    assert cluster.leader_now() != "one"
                    await cluster.add(pod("b"))
                    await eventually(lambda: cluster.all_bound("b"))
            assert [binding.sender for binding in cluster.bindings] == ["one", "two"]
            _only_leaders_bound(cluster)

    run(main())


async def _cut_off(one: Instance) -> None:
    await one.link.disconnect()
    error = await one.ended()
    assert isinstance(error, LeaseLostError)


def test_a_leader_that_is_cut_off_gives_up_before_the_other_begins() -> None:
    """It ends with a lost lease; every binding came from the holder of the lease."""

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1", pods="500"))
            async with running_scheduler(cluster, settings(elects=True), name="one") as one:
                await _leading(cluster, "one")
                async with running_scheduler(cluster, settings(elects=True), name="two"):
                    await cluster.add(*(pod(f"a{i}") for i in range(20)))
                    await eventually(cluster.all_bound)
                    await _cut_off(one)
                    assert cluster.leader_now() == "one", "the other must wait until the lease has run out"
                    await cluster.add(*(pod(f"b{i}") for i in range(20)))
                    await eventually(cluster.all_bound)
            assert {binding.sender for binding in cluster.bindings} == {"one", "two"}
            _only_leaders_bound(cluster)

    run(main())


def test_wrong_clocks_do_not_make_two_leaders() -> None:
    """An instance whose clock is hours ahead waits as long as any other."""

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1", pods="500"))
            async with running_scheduler(cluster, settings(elects=True), name="one") as one:
                await _leading(cluster, "one")
                async with running_scheduler(cluster, settings(elects=True), name="ahead", skew=7200.0):
                    await cluster.add(*(pod(f"a{i}") for i in range(5)))
                    await eventually(cluster.all_bound)
                    assert cluster.leader_now() == "one"
                    await _cut_off(one)
                    await cluster.add(pod("b"))
                    await eventually(cluster.all_bound)
            _only_leaders_bound(cluster)

    run(main())
