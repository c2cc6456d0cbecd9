"""A live scheduler at the embedded control plane with extenders over HTTP: that of the how-to, and others."""

import re
import runpy
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from kubestow.config.configuration import Extender
from support.client.scripted import Answer, Request, serving
from support.client.virtualtime import run
from support.integration.cluster import (
    PODS,
    eventually,
    node,
    pod,
    priority_class,
    running_cluster,
    running_scheduler,
    settings,
)
from support.repository import ROOT

PAGE = ROOT / "docs/how-to/use-an-extender.md"


def extenders(port: int, **fields: Any) -> Any:
    return settings(extenders=(Extender(urlPrefix=f"http://127.0.0.1:{port}/licences", **fields),))


def test_the_extender_of_the_how_to(tmp_path: Path) -> None:
    """It allows only nodes with a licence, prefers those with many, and gives reasons for rejections."""
    [code] = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    file = tmp_path / "extender.py"
    file.write_text(code)
    verbs = runpy.run_path(str(file))["Extender"].verbs

    async def script(request: Request, answer: Answer) -> None:
        answer.reply(200, verbs[request.path](request.json))

    async def main() -> None:
        async with running_cluster() as cluster, serving(script) as extender:
            await cluster.add(*(node(f"node-{i}", cpu="1") for i in (1, 2, 3)))
            verbs_of = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "nodeCacheCapable": True}
            async with running_scheduler(cluster, extenders(extender.port, weight=1, **verbs_of)):
                await cluster.add(pod("first", cpu="900m"))
                await eventually(lambda: cluster.all_bound("first"))
                await cluster.add(pod("second", cpu="900m"))
                await eventually(lambda: cluster.all_bound("second"))
                assert await cluster.nodes_of_pods() == {"first": "node-3", "second": "node-2"}
                await cluster.add(pod("third", cpu="900m"))

                async def refused() -> bool:
                    return bool(await cluster.events("FailedScheduling"))

                await eventually(refused)
                [event, *_] = await cluster.events("FailedScheduling")
                assert event["note"].startswith("0/3 nodes are available: 1 no licence, 2 Insufficient cpu.")
            assert extender.connections == 1

    run(main())


def test_whole_objects_are_sent_as_the_server_stores_them() -> None:
    """Nodes and pods with fields that the scheduler does not read, from lists and from watches."""

    async def script(request: Request, answer: Answer) -> None:
        answer.reply(200, {"Nodes": request.json["Nodes"]})

    async def main() -> None:
        async with running_cluster() as cluster, serving(script) as extender:
            await cluster.add(node("n1"), pod("p"))
            async with running_scheduler(cluster, extenders(extender.port, filterVerb="filter")):
                await eventually(lambda: cluster.all_bound("p"))
                # The pod waits until the scheduler has received the change.
                await cluster.patch("/api/v1/nodes/n1", {"metadata": {"annotations": {"a": "b"}, "labels": {"c": "d"}}})
                await cluster.add(pod("q", dnsPolicy="Default", nodeSelector={"c": "d"}))
                await eventually(lambda: cluster.all_bound("q"))
            stored = await cluster.get("/api/v1/nodes/n1")
            sent = extender.requests[-1].json
            for gone in ("kind", "apiVersion"):
                stored.pop(gone)
            stored["metadata"].pop("managedFields", None)
            assert sent["Nodes"]["items"] == [stored]
            assert sent["Pod"]["spec"]["dnsPolicy"] == "Default"
            assert sent["Pod"]["metadata"].keys().isdisjoint({"managedFields"})

    run(main())


def test_binding_and_preempting_by_an_extender() -> None:
    """It binds every pod itself, and chooses another victim than the scheduler would."""

    async def main() -> None:
        async with running_cluster() as cluster:

            async def script(request: Request, answer: Answer) -> None:
                args = request.json
                if request.path.endswith("/bind"):
                    target = {"kind": "Node", "name": args["Node"]}
                    binding = {"metadata": {"name": args["PodName"], "uid": args["PodUID"]}, "target": target}
                    kind = {"apiVersion": "v1", "kind": "Binding"}
                    await cluster.call("POST", f"{PODS}/{args['PodName']}/binding", {**kind, **binding})
                    answer.reply(200, {"Error": ""})
                    return
                victims = {name: found["Pods"] for name, found in args["NodeNameToVictims"].items()}
                assert [victim["spec"]["nodeName"] for victim in victims["n1"]] == ["n1"]
                other = (await cluster.pods())["precious"]["metadata"]["uid"]
                meta = {"n1": {"Pods": [{"UID": other}], "NumPDBViolations": 0}}
                answer.reply(200, {"NodeNameToMetaVictims": meta})

            async with serving(script) as extender:
                configured = extenders(extender.port, preemptVerb="preempt", bindVerb="bind")
                classes = (priority_class("high", 100), priority_class("middle", 50))
                await cluster.add(node("n1", cpu="2"), *classes)
                async with running_scheduler(cluster, configured):
                    await cluster.add(pod("cheap", cpu="900m"), pod("precious", cpu="900m", priorityClassName="middle"))
                    await eventually(lambda: cluster.all_bound("cheap", "precious"))
                    await cluster.add(pod("vip", cpu="900m", priorityClassName="high"))
                    await eventually(lambda: cluster.all_bound("vip"))
                    assert set(await cluster.pods()) == {"cheap", "vip"}
            assert cluster.bindings == []

    run(main())


def test_a_hanging_extender_does_not_block_the_lease() -> None:
    """Leases are renewed and pods bound while it hangs; its pods fail after the timeout, with the reason."""

    async def script(request: Request, answer: Answer) -> None:
        if request.json["Pod"]["metadata"]["name"] == "unlucky":
            await answer.client_left()
        else:
            answer.reply(200, {"NodeNames": request.json["NodeNames"]})

    async def main() -> None:
        async with running_cluster() as cluster, serving(script) as extender:
            await cluster.add(node("n1"))
            configured = replace(
                extenders(extender.port, filterVerb="filter", nodeCacheCapable=True),
                leaderElection=settings(elects=True).leaderElection,
            )
            async with running_scheduler(cluster, configured) as scheduler:
                await cluster.add(pod("unlucky"))
                await eventually(lambda: bool(extender.requests))
                await cluster.add(pod("lucky"))
                await eventually(lambda: cluster.all_bound("lucky"))
                await eventually(lambda: cluster.events("FailedScheduling"))
                [event, *_] = await cluster.events("FailedScheduling")
                assert "context deadline exceeded" in event["note"]
                assert scheduler.live.leads

    run(main())
