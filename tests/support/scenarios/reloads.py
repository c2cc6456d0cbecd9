"""A scheduler in virtual time whose configuration and plugins are files, and can be reloaded."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from kubestow.api.pod import Pod
from kubestow.cli import configuration_file
from kubestow.cli.scheduler.reload import Reloader, Setup
from kubestow.config import ConfigError, Features
from kubestow.plugin.loading import PluginCollection
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.telemetry.metrics.reload import ReloadMetrics
from kubestow.testing import SchedulerHarness

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
MINE = """profiles:
- plugins: {multiPoint: {enabled: [{name: Mine}]}}
"""


class Event(NamedTuple):
    kind: str
    reason: str
    note: str


def plugin(body: str = "", version: str = "v1") -> str:
    """Return the source of a plugin that lets pods onto nodes whose name begins with its version; `body` is added."""
    lines = [
        "class Mine:",
        "    name = 'Mine'",
        "    def __init__(self, args, handle):",
        "        self.handle = handle",
        "    def filter(self, state, pod, node):",
        f"        return None if node.name.startswith({version!r}) else 'of another version'",
        *(f"    {line}" for line in body.splitlines()),
    ]
    return "\n".join(lines) + "\n"


class Reloadable:
    """The files, the scheduler, and the events of reloads."""

    def __init__(
        self, folder: Path, start: Callable[..., SchedulerHarness], configuration: str = MINE, code: str | None = None
    ) -> None:
        self.configuration = folder / "scheduler.yaml"
        self.plugin = folder / "mine.py"
        self.configuration.write_text(HEAD + configuration)
        self.plugin.write_text(plugin() if code is None else code)
        self.metrics = ReloadMetrics()
        self.events: list[Event] = []
        self.hangs = False
        """Whether loading never ends."""
        setup = self._read()
        # Named in every profile at the start, so that the harness does not enable them itself.
        self.harness = start(setup.configuration, plugins=[loaded.plugin for loaded in setup.plugins.loaded])
        self.reloader = Reloader(
            self.harness.core,
            setup,
            self._load,
            lambda: self.harness.cluster.all(Pod),
            lambda *words: self.events.append(Event(*words)),
            self.metrics,
        )

    def _read(self) -> Setup:
        plugins = PluginCollection([str(self.plugin)])
        configuration = configuration_file.load(str(self.configuration), Features(), plugins)
        return Setup(configuration, plugins.register(in_tree_registry()), plugins)

    async def _load(self) -> Setup:
        if self.hangs:
            await asyncio.sleep(1e9)
        try:
            return self._read()
        except ConfigError as error:
            raise ValueError("\n".join(map(str, error.problems))) from None

    def reload(self, *, configuration: str | None = None, code: str | None = None) -> bool:
        """Write files and reload them; return whether that succeeded."""
        if configuration is not None:
            self.configuration.write_text(HEAD + configuration)
        if code is not None:
            self.plugin.write_text(code)
        task = self.harness.loop.create_task(self.reloader.reload())
        self.harness.run_until(task.done)
        return task.result()

    def count(self, result: str) -> float:
        return self.metrics.reloads.read().get((result,), 0)

    def mine(self, name: str = "default-scheduler") -> Any:
        """Return the plugin of a profile."""
        return self.harness.core.profiles[name].plugins["Mine"]
