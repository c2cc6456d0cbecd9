"""Replaces configuration and plugins while the scheduler runs.

    load -> compare -> build profiles -> dry run -> swap between two cycles -> trial -> proven
      |        |            |            |                                      |
      +--------+------------+------------+--> keep the current version          +--> roll back to the proven version

Nothing is awaited between loading and the swap, so no cycle sees a partial change. Unchanged profiles are kept as
objects, with the state of their plugins. Pods that are being bound finish with the profile and the extenders they
started with. The first attempts by new profiles are a trial: if plugins fail in most of them, the profiles that were
proven last are restored.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

import msgspec
from msgspec.structs import replace

from kubestow.api.pod import Pod
from kubestow.api.whole_objects import WholePod
from kubestow.cli.scheduler.reload_dry_run import try_profiles
from kubestow.cli.scheduler.watches import DeclaredWatches
from kubestow.config import SchedulerConfiguration, configuration
from kubestow.config.differences import differences
from kubestow.config.expansion import enabled_names
from kubestow.plugin.loading import PluginCollection, forget_modules
from kubestow.scheduler.assembly import Core
from kubestow.scheduler.cycle.outcome import Failed
from kubestow.scheduler.extenders.client import ExtenderClient
from kubestow.scheduler.extenders.whole_kinds import whole_kinds
from kubestow.scheduler.framework.profile import Profile
from kubestow.scheduler.framework.queueing import QueueRules
from kubestow.scheduler.framework.registry import Registry
from kubestow.scheduler.queue.ordering import queue_order
from kubestow.telemetry.logs import get_logger
from kubestow.telemetry.metrics.reload import ReloadMetrics

log = get_logger(__name__)

LOADING_SECONDS = 60.0
LONGEST_TRIAL = 20
"""Number of attempts after which new profiles are proven."""
SHORTEST_TRIAL = 5
"""Minimum number of attempts before a rollback."""

_MAY_CHANGE = ("profiles", "extenders", "percentageOfNodesToScore", "podInitialBackoffSeconds", "podMaxBackoffSeconds")


class Setup(msgspec.Struct, frozen=True):
    """The configuration of a scheduler, with its plugins."""

    configuration: SchedulerConfiguration
    registry: Registry
    plugins: PluginCollection


Load = Callable[[], Awaitable[Setup]]
"""Reads everything again, as at the start; raises an exception if something is invalid."""
Announce = Callable[[str, str, str], None]
"""Writes an event of a kind (Normal or Warning), with a reason and a note."""


class ReloadError(Exception):
    """A configuration cannot replace the one in use; each line is a reason."""


class _Version(msgspec.Struct, frozen=True):
    setup: Setup
    profiles: Mapping[str, Profile]


class Reloader:
    """Reloads on demand, and rolls back versions that fail."""

    def __init__(
        self,
        core: Core,
        setup: Setup,
        load: Load,
        pods: Callable[[], Iterable[Pod]],
        announce: Announce,
        metrics: ReloadMetrics,
        extenders: ExtenderClient | None = None,
        watches: DeclaredWatches | None = None,
    ) -> None:
        """`pods` returns all pods, of any scheduler; `extenders` makes the calls to extenders.

        `watches` are those of the kinds that plugins declare.
        """
        self._core = core
        self._load = load
        self._pods = pods
        self._announce = announce
        self._metrics = metrics
        self._extenders = extenders
        self._watches = watches
        self._whole = whole_kinds(setup.configuration.extenders)
        """The kinds whose complete JSON is stored."""
        self._current = self._proven = _Version(setup, dict(core.profiles))
        self._profiles = {id(profile): profile for profile in core.profiles.values()}
        """The profiles whose plugins have not ended."""
        self._turn = asyncio.Lock()
        self._attempts = self._failures = 0
        metrics.succeeded_at.set(self._now())

    @property
    def setup(self) -> Setup:
        """The setup in use."""
        return self._current.setup

    async def reload(self) -> bool:
        """Load everything again, and use it if it is valid; return whether it is."""
        async with self._turn:
            try:
                async with asyncio.timeout(LOADING_SECONDS):
                    setup = await self._load()
                    await self._watch(setup)
                before = self._current.setup.configuration
                changed = await self._between_cycles(self._take, setup)
            except Exception as error:
                late = f"loading takes longer than {LOADING_SECONDS:g} seconds"
                message = late if isinstance(error, TimeoutError) else str(error) or repr(error)
                log.error("Configuration not reloaded; the previous one stays in use", err=message)
                self._went_wrong("failure", "ReloadFailed", message)
                self._forget_unused((self._current, self._proven))
                return False
        fields = list(map(str, differences(before, setup.configuration)))
        message = f"changed: {', '.join(changed or fields)}" if changed or fields else "nothing has changed"
        log.info("Configuration reloaded", changed=changed, fields=fields)
        for loaded in setup.plugins.loaded:
            log.info("Loaded plugin", plugin=loaded.name, source=loaded.source, sha256=loaded.digest)
        self._metrics.reloads.inc("success")
        self._metrics.successful.set(1)
        self._metrics.succeeded_at.set(self._now())
        self._announce("Normal", "Reloaded", f"reloaded its configuration; {message}")
        return True

    async def _watch(self, setup: Setup) -> None:
        """List the kinds that new plugins declare."""
        if self._watches is not None:
            names = {name for profile in setup.configuration.profiles for name in enabled_names(profile.plugins)}
            for name in names & set(setup.registry):
                self._watches.add(watched.kind for watched in setup.registry.watches(name))
            await self._watches.wait_synced()

    def _forget_unused(self, used: Iterable[_Version]) -> None:
        """End the plugins that no version in use has, with their watches and modules."""
        versions = tuple(used)
        profiles = {id(profile): profile for version in versions for profile in version.profiles.values()}
        for number in self._profiles.keys() - profiles.keys():
            self._profiles[number].close()
        self._profiles = profiles
        if self._watches is not None:
            self._watches.keep_only(kind for profile in profiles.values() for kind in profile.declared_kinds)
        forget_modules(version.setup.plugins for version in versions)

    async def _between_cycles(self, change: Callable[[Setup], list[str]], setup: Setup) -> list[str]:
        """Make a change now, or after a cycle that waits for an extender."""
        done: asyncio.Future[list[str]] = asyncio.get_running_loop().create_future()

        def make() -> None:
            try:
                done.set_result(change(setup))
            except Exception as error:
                done.set_exception(error)

        if self._core.gate.is_closed:
            self._core.gate.defer(make)
        else:
            make()
        return await done

    def _take(self, setup: Setup) -> list[str]:
        """Replace the current setup; return what was added, changed or removed."""
        core, current = self._core, self._current
        refused = [
            f"{found.path} cannot change while running: restart the scheduler"
            for found in differences(current.setup.configuration, setup.configuration)
            if found.section not in _MAY_CHANGE
        ]
        for kind, whole in whole_kinds(setup.configuration.extenders).items():
            if self._whole.get(kind) not in (whole, WholePod):
                reason = f"these extenders need complete {kind.__name__}s, which are not stored"
                refused.append(f"extenders: {reason}: restart the scheduler")
        if refused:
            raise ReloadError("\n".join(refused))
        if self._extenders is not None:
            self._extenders.open(setup.configuration.extenders)
        wanted = setup.configuration.profiles
        changed = tuple(profile for profile in wanted if not _is_same(profile, setup, current.setup))
        built = core.build(replace(setup.configuration, profiles=changed), setup.registry)
        self._profiles.update((id(profile), profile) for profile in built.values())
        try_profiles(built, core.profiles, core.cluster, core.queue.nominator, self._pods())
        profiles = {name: built.get(name) or core.profiles[name] for name in (one.schedulerName for one in wanted)}
        return self._swap(_Version(setup, profiles))

    def _swap(self, version: _Version) -> list[str]:
        core, profiles, settings = self._core, version.profiles, version.setup.configuration
        others = settings.extenders != self.setup.configuration.extenders
        if others:
            core.extenders.configure(settings.extenders, core.cluster.nodes)
            if self._extenders is not None:
                self._extenders.keep_only(settings.extenders)
        names = dict.fromkeys((*core.profiles, *profiles))
        changed = [name for name in names if core.profiles.get(name) is not profiles.get(name)]
        for name in changed:
            if name in core.profiles:
                core.profiles[name].flush_evaluations(core.handle.metrics.plugin_evaluations)
        core.profiles.clear()
        core.profiles.update(profiles)
        core.queue.reconfigure(
            {name: QueueRules(profile) for name, profile in profiles.items()},
            queue_order(next(iter(profiles.values()))),
            float(settings.podInitialBackoffSeconds),
            float(settings.podMaxBackoffSeconds),
            [name for name in profiles if others or name in changed],
        )
        core.cycles.reconfigure(settings.percentageOfNodesToScore)
        core.intake.scheduler_names_changed(self._pods())
        self._current = version
        self._begin_trial()
        self._forget_unused((version, self._proven))
        return [*(f"profile {name}" for name in changed), *(["extenders"] if others else [])]

    # Trial

    def _begin_trial(self) -> None:
        self._attempts = self._failures = 0
        proven = set(map(id, self._proven.profiles.values()))
        if all(id(profile) in proven for profile in self._current.profiles.values()):
            self._end_trial()
        else:
            self._core.scheduler.attempts.set_end_callback(self._attempt_ended)

    def _end_trial(self) -> None:
        self._proven = self._current
        self._core.scheduler.attempts.set_end_callback(None)

    def _attempt_ended(self, profile: Profile, failed: Failed | None) -> None:
        name = profile.name
        if self._current.profiles.get(name) is not profile or self._proven.profiles.get(name) is profile:
            return
        self._attempts += 1
        if failed is not None and failed.failing_plugin:
            self._failures += 1
            if self._attempts >= SHORTEST_TRIAL and 2 * self._failures > self._attempts:
                self._core.scheduler.attempts.set_end_callback(None)
                count = f"plugins failed in {self._failures} of the first {self._attempts} attempts"
                message = f"{count}: {failed.located_message}"
                # Not during a cycle.
                asyncio.get_running_loop().call_soon(self._roll_back, self._current, message)
                return
        if self._attempts >= LONGEST_TRIAL:
            self._end_trial()
            self._forget_unused((self._current,))

    def _roll_back(self, version: _Version, message: str) -> None:
        if self._core.gate.is_closed:
            self._core.gate.defer(self._roll_back, version, message)
        elif self._current is version:
            self._swap(self._proven)
            log.error("Configuration rolled back to the previous one", err=message)
            self._went_wrong("rollback", "RolledBack", message)

    # Reports

    def _went_wrong(self, result: str, reason: str, message: str) -> None:
        self._metrics.reloads.inc(result)
        self._metrics.successful.set(0)
        self._announce("Warning", reason, f"uses the previous configuration: {message}")

    def _now(self) -> float:
        return self._core.handle.clock.now()


def _is_same(profile: configuration.Profile, setup: Setup, before: Setup) -> bool:
    """Return whether a profile and its plugins are unchanged."""
    return profile in before.configuration.profiles and all(
        setup.plugins.plugin(name) is before.plugins.plugin(name) for name in enabled_names(profile.plugins)
    )
