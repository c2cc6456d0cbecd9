"""Decisions published at a control plane: annotations on pods, and a log."""

import json
from pathlib import Path
from typing import Any

from kubestow.cli.scheduler.options import DecisionOptions
from kubestow.insight.decisions.annotations import PREFIX
from support.client.virtualtime import run
from support.integration.cluster import Cluster, eventually, node, pod, running_cluster, running_scheduler


async def annotations(cluster: Cluster, name: str) -> dict[str, Any]:
    found: dict[str, Any] = (await cluster.pods())[name]["metadata"].get("annotations", {})
    return found


def test_pods_are_annotated(tmp_path: Path) -> None:
    """Bound and unschedulable pods are annotated once, without retrying them; other annotations stay."""
    log = tmp_path / "log"
    options = DecisionOptions(1 << 24, str(log), 1 << 20, 1, log_nodes=True, annotates=True)

    async def main() -> None:
        async with running_cluster() as cluster:
            await cluster.add(node("n1"))
            big = pod("big")
            big["metadata"]["annotations"] = {"mine": "stays"}
            big["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "1k"}}
            await cluster.add(pod("p"), big)
            async with running_scheduler(cluster, decisions=options) as instance:

                async def is_annotated() -> bool:
                    done = "conditions" in (await cluster.pods())["big"]["status"]
                    return done and bool(await annotations(cluster, "p")) and len(await annotations(cluster, "big")) > 1

                await eventually(is_annotated)
                assert (await annotations(cluster, "p"))[PREFIX + "selected-node"] == "n1"
                found = await annotations(cluster, "big")
                assert found["mine"] == "stays"
                assert json.loads(found[PREFIX + "filter-result"])["n1"]["NodeResourcesFit"] == "Insufficient cpu"
                version = (await cluster.pods())["big"]["metadata"]["resourceVersion"]
                await cluster.add(pod("q"))
                await eventually(lambda: cluster.all_bound("q"))
                assert (await cluster.pods())["big"]["metadata"]["resourceVersion"] == version
                assert instance.live.decisions is not None
                assert sum(record.name == "big" for record in instance.live.decisions) == 1

    run(main())
    written = [json.loads(line) for line in log.read_text().splitlines()]
    assert sorted(line["pod"] for line in written) == ["default/big", "default/p", "default/q"]
    assert all("n1" in line["nodes"] for line in written)
