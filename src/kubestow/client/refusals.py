"""Logs the resources that the server lacks or forbids, and interrupted watches: one line for those of the same cause.

Each resource is a separate request, so that every restart of a server interrupts all of them.
"""

import asyncio
from typing import Any

from kubestow.api.custom_kinds import rule_text
from kubestow.api.failures import ApiError, CallError, ForbiddenError
from kubestow.client.resources import Resource
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

TOGETHER_SECONDS = 0.2
"""Seconds for which the first refusal or interruption of a group waits for the others."""
REPEAT_SECONDS = 30.0
"""Seconds between lines about the same cause of interruptions."""


class Refusals:
    """The refusals and interruptions that are not logged yet, shared by all reflectors."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pending: dict[tuple[str, str, str, bool], list[tuple[Resource[Any], ApiError]]] = {}
        self._interrupted: dict[str, set[str]] = {}
        """The names of the resources that are not logged yet, by the text of their error."""

    def add(self, resource: Resource[Any], problem: str, error: ApiError, *, optional: bool) -> None:
        """Log a refusal after a short delay; with `optional` the scheduler continues without the resource."""
        key = resource.group, resource.version, problem, optional
        if key not in self._pending:
            self._pending[key] = []
            self._loop.call_later(TOGETHER_SECONDS, self._log, key)
        self._pending[key].append((resource, error))

    def add_interruption(self, resource: Resource[Any], error: CallError) -> None:
        """Log after a short delay that a resource is listed or watched again."""
        text = str(error)
        if text not in self._interrupted:
            self._interrupted[text] = set()
            self._loop.call_later(TOGETHER_SECONDS, self._log_interruptions, text)
        self._interrupted[text].add(resource.name)

    def _log_interruptions(self, text: str) -> None:
        names = self._interrupted.pop(text)
        if names:
            log.warning("Watching again", err=text, resource=", ".join(sorted(names)))
            self._interrupted[text] = set()
            self._loop.call_later(REPEAT_SECONDS, self._log_interruptions, text)

    def _log(self, key: tuple[str, str, str, bool]) -> None:
        group, version, problem, optional = key
        refused = sorted(self._pending.pop(key), key=lambda each: each[0].name)
        plurals = [resource.plural for resource, error in refused if isinstance(error, ForbiddenError)]
        missing = {"missing_rule": rule_text(group, plurals, ("list", "watch"))} if plurals else {}
        without = "continuing without them"
        if any(resource.is_declared for resource, _ in refused):
            without += "; plugins that block on them reject pods"
        write = log.warning if optional else log.error
        write(
            f"The API server {problem}",
            err=refused[0][1],
            resource=", ".join(resource.name for resource, _ in refused),
            version=version,
            consequence=without if optional else "cannot continue until this is solved",
            **missing,
        )
