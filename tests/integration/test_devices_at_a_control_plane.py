"""A live scheduler at the embedded control plane: claims are allocated, shared, freed, contended for and rewritten."""

from typing import Any

import pytest

from kubestow.config.features import Features
from kubestow.server.http.connection import Connection
from kubestow.server.http.messages import Request
from support.client.virtualtime import run
from support.integration.cluster import Application, Cluster, eventually, node, pod, running_cluster, running_scheduler
from support.integration.device_manifests import (
    CLAIMS,
    claim,
    claiming,
    device_class,
    device_slice,
    devices_of,
    reserved_for,
)
from support.integration.misbehaviour import conflict

FINALIZER = "resource.kubernetes.io/delete-protection"
RESOURCE = "example.com/gpu"


def asking(name: str, count: int) -> dict[str, Any]:
    """Return a pod that requests an extended resource."""
    found = pod(name)
    amounts = {"cpu": "100m", RESOURCE: str(count)}
    found["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": amounts}
    return found


async def claims(cluster: Cluster) -> dict[str, dict[str, Any]]:
    return {item["metadata"]["name"]: item for item in (await cluster.get(CLAIMS))["items"]}


def test_a_claim_is_allocated_shared_and_freed() -> None:
    """Finalizer, allocation and reservation are written; two pods share a claim; a third waits until it is freed."""

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1"), device_class(), device_slice("n1", 1))
            await cluster.add(claim("c"), claiming("first", "c"), claim("d"), claiming("third", "d"))
            async with running_scheduler(cluster):
                await eventually(lambda: cluster.all_bound("first"))
                await cluster.add(claiming("second", "c"))
                await eventually(lambda: cluster.all_bound("first", "second"))
                got = (await claims(cluster))["c"]
                assert got["metadata"]["finalizers"] == [FINALIZER]
                assert devices_of(got) == ["n1/gpu-0"]
                assert reserved_for(got) == ["first", "second"]
                assert (await cluster.nodes_of_pods())["third"] == ""
                freed = {**got, "status": {}}
                await cluster.call("PUT", f"{CLAIMS}/c/status", freed)
                await eventually(lambda: cluster.all_bound("third"))
                assert devices_of((await claims(cluster))["d"]) == ["n1/gpu-0"]

    run(main())


def test_a_rule_keeps_pods_from_the_devices_it_taints() -> None:
    """While it exists, unless its feature gate is off."""
    taint = {"taint": {"key": "broken", "effect": "NoSchedule"}, "deviceSelector": {"pool": "n1"}}
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": taint,
    }

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1"), device_class(), device_slice("n1", 2), rule)
            await cluster.add(claim("c"), claiming("waits", "c"))
            async with running_scheduler(cluster):
                await eventually(lambda: cluster.events("FailedScheduling"))
                assert (await cluster.nodes_of_pods())["waits"] == ""
                await cluster.delete("/apis/resource.k8s.io/v1/devicetaintrules/r")
                await eventually(lambda: cluster.all_bound("waits"))
            await cluster.add(rule, claim("d"), claiming("another", "d"))
            async with running_scheduler(cluster, features=Features(dra_device_taint_rules=False)):
                await eventually(lambda: cluster.all_bound("another"))

    run(main())


def test_two_pods_race_for_the_last_device() -> None:
    """One gets it; the other is reported as unschedulable."""

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1"), device_class(), device_slice("n1", 1), claim("a"), claim("b"))
            async with running_scheduler(cluster):
                await cluster.add(claiming("a", "a"), claiming("b", "b"))

                async def has_reason() -> bool:
                    return bool(await cluster.events("FailedScheduling")) and len(await bound()) == 1

                async def bound() -> list[str]:
                    return [name for name, where in (await cluster.nodes_of_pods()).items() if where]

                await eventually(has_reason)
                note = (await cluster.events("FailedScheduling"))[0]["note"]
                assert note.startswith("0/1 nodes are available: 1 cannot allocate all claims. preemption: ")
                assert sorted(map(devices_of, (await claims(cluster)).values())) == [[], ["n1/gpu-0"]]

    run(main())


@pytest.mark.parametrize("path", ["/c", "/c/status"])
def test_conflicts_at_every_write(path: str) -> None:
    """A claim that was changed meanwhile is read and written again."""
    refused: list[str] = []

    def wrap(application: Application) -> Application:
        def serve(request: Request, connection: Connection) -> None:
            if request.method == "PUT" and request.path == f"{CLAIMS}{path}" and len(refused) < 3:
                refused.append(request.path)
                conflict(application, request, connection)
            else:
                application(request, connection)

        return serve

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1"), device_class(), device_slice("n1", 1), claim("c"), claiming("p", "c"))
            async with running_scheduler(cluster, wrap=wrap):
                await eventually(lambda: cluster.all_bound("p"))
                assert len(refused) == 3
                assert reserved_for((await claims(cluster))["c"]) == ["p"]

    run(main())


@pytest.mark.parametrize("kind", ["named", "extended"])
def test_a_failed_binding_releases_everything(kind: str) -> None:
    """A reservation is removed with a patch; a generated claim is deleted. The next attempt succeeds."""
    seen: list[tuple[str, str]] = []

    def wrap(application: Application) -> Application:
        def serve(request: Request, connection: Connection) -> None:
            if request.method != "GET" and "resourceclaims" in request.path:
                seen.append((request.method, request.path.rpartition("/")[2]))
            if request.path.endswith("/binding") and ("POST", "bind") not in seen:
                seen.append(("POST", "bind"))
                conflict(application, request, connection)
            else:
                application(request, connection)

        return serve

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1"), device_class(extendedResourceName=RESOURCE), device_slice("n1", 1))
            await cluster.add(claim("c"), claiming("p", "c") if kind == "named" else asking("p", 1))
            async with running_scheduler(cluster, wrap=wrap):
                await eventually(lambda: cluster.all_bound("p"))
                undone = ("PATCH", "status") if kind == "named" else "DELETE"
                assert any(undone in (call, call[0]) for call in seen)
                reserved = [found for found in (await claims(cluster)).values() if reserved_for(found) == ["p"]]
                assert [devices_of(found) for found in reserved] == [["n1/gpu-0"]]

    run(main())


def test_extended_resources() -> None:
    """The claim has a generated name, which is written to the pod's status."""

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1"), device_class(extendedResourceName=RESOURCE), device_slice("n1", 2))
            await cluster.add(asking("p", 2))
            async with running_scheduler(cluster):
                await eventually(lambda: cluster.all_bound("p"))
                ((name, made),) = (await claims(cluster)).items()
                assert name.startswith("p-extended-resources-")
                assert devices_of(made) == ["n1/gpu-0", "n1/gpu-1"]
                status = (await cluster.pods())["p"]["status"]["extendedResourceClaimStatus"]
                assert status["resourceClaimName"] == name

    run(main())
