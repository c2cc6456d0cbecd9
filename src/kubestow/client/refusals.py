"""Logs the resources that the server lacks or forbids: one line per API version, though each is a separate request."""

import asyncio
from typing import Any

from kubestow.api.custom_kinds import rule_text
from kubestow.api.failures import ApiError, ForbiddenError
from kubestow.client.resources import Resource
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

TOGETHER_SECONDS = 0.2
"""Seconds for which the first refusal of a group waits for the others."""


class Refusals:
    """The refusals that are not logged yet, shared by all reflectors."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._pending: dict[tuple[str, str, str, bool], list[tuple[Resource[Any], ApiError]]] = {}

    def add(self, resource: Resource[Any], problem: str, error: ApiError, *, optional: bool) -> None:
        """Log a refusal after a short delay; with `optional` the scheduler continues without the resource."""
        key = resource.group, resource.version, problem, optional
        if key not in self._pending:
            self._pending[key] = []
            self._loop.call_later(TOGETHER_SECONDS, self._log, key)
        self._pending[key].append((resource, error))

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
