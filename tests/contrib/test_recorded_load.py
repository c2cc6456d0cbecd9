"""Measurements that were recorded in a live cluster decide again in replays and comparisons."""

import asyncio
import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from msgspec.structs import replace

from kubestow import config
from kubestow.cli import main
from kubestow.client.http import HttpClient
from kubestow.contrib.load import LoadVariationRiskBalancing
from kubestow.plugin.loading import PluginCollection
from kubestow.simulator.recording.files import RecordingWriter, entries
from kubestow.simulator.recording.following import follow
from kubestow.simulator.recording.polled import record_polled
from support.client.doubles import SkewedClock
from support.client.virtualtime import run
from support.contrib import configured
from support.integration.cluster import eventually, node, pod, running_cluster, running_scheduler

MODULE = "kubestow.contrib.load"
PLUGIN = LoadVariationRiskBalancing.name
POLL_SECONDS = 40


class LoadWatcher:
    """Answers requests with the utilization of nodes."""

    def __init__(self) -> None:
        self.cpu: dict[str, int] = {}

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        nodes = {
            name: {"metrics": [{"type": "CPU", "operator": "AVG", "value": value}]} for name, value in self.cpu.items()
        }
        body = json.dumps({"data": {"NodeMetricsMap": nodes}}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        writer.close()
        await writer.wait_closed()


def chosen(folder: Path) -> dict[str, str]:
    decisions = (json.loads(line) for line in (folder / "decisions.jsonl").read_text().splitlines())
    return {one["pod"].partition("/")[2]: one["chosen"] for one in decisions if one.get("chosen")}


async def record(path: Path, configuration: config.SchedulerConfiguration, watcher: LoadWatcher) -> dict[str, str]:
    """Record a cluster whose load changes; return the nodes that its scheduler chose."""
    clock, notes = SkewedClock(), list[str]()
    async with (
        running_cluster() as cluster,
        running_scheduler(cluster, configuration, plugins=[LoadVariationRiskBalancing]) as instance,
    ):
        await cluster.add(*(node(name) for name in ("n1", "n2", "n3")))
        writer, http = RecordingWriter(path), HttpClient("test", clock)
        polling = record_polled(PluginCollection([MODULE]), configuration, writer, clock, http, notes.append)
        following = asyncio.create_task(follow(instance.link.access, writer, clock, None, notes.append))
        await eventually(lambda: "recording" in notes)
        for round_, load in enumerate(({"n1": 90, "n2": 20, "n3": 50}, {"n1": 10, "n2": 80, "n3": 50})):
            watcher.cpu = load
            await asyncio.sleep(POLL_SECONDS)
            await cluster.add(*(pod(f"p{round_}-{number}") for number in range(3)))
            await eventually(cluster.all_bound)
        following.cancel()
        polling.close()
        http.close()
        await asyncio.wait({following})
        return await cluster.nodes_of_pods()


def test_replays_and_comparisons_choose_the_nodes_of_the_recorded_cluster(tmp_path: Path) -> None:
    recording, file = tmp_path / "recording.gz", tmp_path / "config.yaml"

    async def recorded() -> dict[str, str]:
        watcher = LoadWatcher()
        async with await asyncio.start_server(watcher.answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            args: dict[str, Any] = {"watcherAddress": f"http://127.0.0.1:{port}"}
            file.write_text(configured(PLUGIN, args, alone=True))
            loaded = config.load(file.read_text(), known=PluginCollection([MODULE]))
            elected = replace(loaded.leaderElection, leaderElect=False)
            return await record(recording, replace(loaded, leaderElection=elected), watcher)

    live = run(recorded())
    assert live == {f"p{round_}-{number}": f"n{2 - round_}" for round_ in (0, 1) for number in range(3)}
    assert {one.plugin for one in entries(recording) if one.op == "poll"} == {f"{PLUGIN}.fetch"}
    common = ("--plugin", MODULE, "--config", str(file), "--out")
    done = CliRunner().invoke(main, ["replay", str(recording), *common, str(tmp_path / "replayed")])
    assert (done.exit_code, chosen(tmp_path / "replayed")) == (0, live), done.output
    out = tmp_path / "compared"
    compared = ("compare", str(recording), "--seeds", "1", "--config", "default")
    done = CliRunner().invoke(main, [*compared, *common, str(out)])
    assert done.exit_code == 0, done.output
    found = [chosen(path.parent) for path in sorted(out.rglob("decisions.jsonl"))]
    assert (found[1], found[0] != live) == (live, True)
    # Other measurements replace the recorded ones.
    data = tmp_path / "load.json"
    data.write_text('{"data": {"NodeMetricsMap": {"n3": {"metrics": [{"type": "CPU", "value": 1}]}}}}')
    options = (*common, str(tmp_path / "other"), "--poll-data", f"{PLUGIN}={data}")
    done = CliRunner().invoke(main, ["replay", str(recording), *options])
    assert set(chosen(tmp_path / "other").values()) == {"n3"}, done.output
