"""What the server lacks or forbids is told in one line an API group, though each resource is asked for by itself."""

import asyncio
from typing import Any

from kubestow.api.failures import ApiError
from kubestow.client.resources import Resource
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)

TOGETHER_SECONDS = 0.2
"""How long the first refusal of a group waits for the others."""


class Refusals:
    """Shared by those who may be refused."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._untold: dict[tuple[str, str, bool], list[tuple[str, ApiError]]] = {}

    def add(self, resource: Resource[Any], problem: str, error: ApiError, *, goes_on: bool) -> None:
        """Tell it in a moment; `goes_on`: the scheduler can do without."""
        key = resource.group, problem, goes_on
        if key not in self._untold:
            self._untold[key] = []
            self._loop.call_later(TOGETHER_SECONDS, self._tell, key)
        self._untold[key].append((resource.name, error))

    def _tell(self, key: tuple[str, str, bool]) -> None:
        _, problem, goes_on = key
        refused = sorted(self._untold.pop(key), key=lambda each: each[0])
        tell = log.warning if goes_on else log.error
        tell(
            f"The API server {problem}",
            err=refused[0][1],
            resource=", ".join(name for name, _ in refused),
            consequence="going on without" if goes_on else "cannot go on before this is solved",
        )
