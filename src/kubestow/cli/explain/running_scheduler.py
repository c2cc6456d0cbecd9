"""Queries of `kubestow explain` to the running scheduler: its records of decisions, and its configuration.

What it does not report is replaced by defaults, with a note.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from kubestow import config
from kubestow.api.failures import ApiError, BadAnswerError, CallError, NotFoundError, UntrustedError
from kubestow.cli import configuration_file
from kubestow.client.access import Access
from kubestow.config import ConfigError, Features, SchedulerConfiguration
from kubestow.insight.decisions.schema import Decision, GroupDecision
from kubestow.insight.explain.scheduler_pages import SchedulerAddress, SchedulerPages, missing_plugins
from kubestow.insight.explain.world import ExplainError
from kubestow.plugin.loading import PluginCollection

_CONFIGURATION, _GATES = "configuration", "feature gates"
_NAMED_WITH = {_CONFIGURATION: "--config", _GATES: "--feature-gates"}

Known = TypeVar("Known", Decision, GroupDecision)


class Record(NamedTuple, Generic[Known]):
    """A recorded decision; or None, with notes that say why there is none."""

    decision: Known | None
    notes: tuple[str, ...] = ()
    is_silent: bool = False
    """Whether the scheduler did not respond at all."""


class ServedSettings(NamedTuple):
    """The configuration of a scheduler, as far as it reports it."""

    configuration: dict[str, Any] | None = None
    gates: dict[str, bool] | None = None
    notes: tuple[str, ...] = ()


class RunningScheduler:
    """The scheduler that the command line or the kubeconfig names, if any. Used inside the running event loop."""

    def __init__(self, access: Access, given: SchedulerAddress) -> None:
        self._access = access
        self._must_answer = bool(given.url)
        self._address = given if given.url else given._replace(url=access.scheduler)
        self._opened: SchedulerPages | None = None

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    @property
    def _pages(self) -> SchedulerPages:
        """A client of the scheduler's pages. Raises CallError if the address is not usable."""
        self._opened = self._opened or SchedulerPages(self._access, self._address, "explain")
        return self._opened

    async def record(self, ask: Callable[[SchedulerPages], Awaitable[Known | None]]) -> Record[Known]:
        """Return a recorded decision. Raises ExplainError if the scheduler at --server does not answer."""
        url = self._address.url
        if not url:
            return Record(None, ("no scheduler was queried (--server names it); this is a dry run.",))
        try:
            decision = await ask(self._pages)
        except NotFoundError as error:
            return Record(None, (f"the scheduler at {url} has no record of it: {error}; this is a dry run.",))
        except CallError as error:
            if self._must_answer:
                raise ExplainError(f"the scheduler at {url} does not answer: {_reason(error)}") from None
            note = f"the scheduler at {url} does not answer: {_reason(error)}; this is a dry run."
            return Record(None, (note,), not isinstance(error, ApiError))
        if decision is None:
            return Record(None, (f"the scheduler at {url} has no record of it; this is a dry run.",))
        return Record(decision)

    async def settings(self, *, configuration: bool, gates: bool, is_silent: bool) -> ServedSettings:
        """Return the requested configuration and gates; a scheduler that did not respond before is not called again."""
        asked = {_CONFIGURATION: configuration, _GATES: gates}
        wanted = [what for what, is_wanted in asked.items() if is_wanted and self._address.url]
        if is_silent:
            verb = "is" if wanted == [_CONFIGURATION] else "are"
            note = f"the scheduler's {' and '.join(wanted)} {verb} unknown; {_instead(wanted)}"
            return ServedSettings(notes=(note,) if wanted else ())
        found: dict[str, Any] = {}
        reasons: dict[str, str] = {}
        for number, what in enumerate(wanted):
            try:
                found[what] = await self._ask(what)
            except ApiError as error:
                reasons[what] = str(error)
            except CallError as error:
                # The next request would fail, too.
                reasons |= dict.fromkeys(wanted[number:], _reason(error))
                break
        return ServedSettings(found.get(_CONFIGURATION), found.get(_GATES), _unread(reasons))

    async def _ask(self, what: str) -> Any:
        if what == _CONFIGURATION:
            return await self._pages.configuration()
        gates = await self._pages.gates()
        if not gates:
            raise BadAnswerError("its metrics do not report them")
        return gates


def _unread(reasons: dict[str, str]) -> tuple[str, ...]:
    if not reasons:
        return ()
    messages = "; ".join(dict.fromkeys(reasons.values()))
    what = f"the scheduler's {' and '.join(reasons)} could not be read ({messages})"
    return (f"{what}; {_instead(list(reasons))}",)


def parse_reported_configuration(
    tree: dict[str, Any], features: Features, plugins: PluginCollection
) -> tuple[SchedulerConfiguration, tuple[str, ...]]:
    """Return the configuration that a scheduler reports, or the default one and a note with the reason."""
    lacking = [name for _, name in missing_plugins(tree, plugins)]
    if lacking:
        names = ", ".join(dict.fromkeys(lacking))
        which = f"the plugin {names} is" if len(set(lacking)) == 1 else f"the plugins {names} are"
        note = f"the scheduler's configuration is not used: {which} not installed; the default one is used;"
        return config.default(features), (
            f"{note} --plugin adds custom plugins, --config names another configuration.",
        )
    try:
        return configuration_file.parse(msgspec.json.encode(tree).decode(), features, plugins), ()
    except ConfigError as error:
        problem = "; ".join(map(str, error.problems))
        note = f"the scheduler's configuration is not used ({problem}); {_instead([_CONFIGURATION])}"
        return config.default(features), (note,)


def _instead(which: list[str]) -> str:
    """Return the part of a note that describes the defaults in use and the flags that override them."""
    several = which != [_CONFIGURATION]
    options = " and ".join(_NAMED_WITH[what] for what in which)
    used = "the default ones are used" if several else "the default one is used"
    return f"{used}; {options} {'name' if len(which) > 1 else 'names'} {'others' if several else 'another'}."


def _reason(error: CallError) -> str:
    """Return why a scheduler does not answer, with a hint if its certificate is not trusted."""
    hint = "--certificate-authority names its authority, --insecure-skip-tls-verify skips verification"
    return f"{error} ({hint})" if isinstance(error, UntrustedError) else str(error)
