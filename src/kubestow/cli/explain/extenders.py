"""Extenders in dry runs: asked if the command line says so, since they are far away and may not expect it."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from kubestow.api.failures import CallError
from kubestow.client.clients import user_agent
from kubestow.clock import SystemClock
from kubestow.config.configuration import Extender
from kubestow.insight.decisions.evaluation_run import AskNow
from kubestow.insight.explain.world import ExplainError
from kubestow.scheduler.extenders.client import ExtenderClient
from kubestow.scheduler.extenders.extender import Answer, Call
from kubestow.telemetry.secrets import redact_text


def asker(configured: Sequence[Extender]) -> AskNow:
    """Asks extenders, on a loop of its own: there may be one that runs, or none."""

    async def ask(calls: Sequence[Call]) -> Sequence[Answer]:
        client = ExtenderClient(configured, SystemClock(), user_agent("explain"), lambda: True)
        try:
            return await client.ask(calls)
        finally:
            client.close()

    def wait(calls: Sequence[Call]) -> Sequence[Answer]:
        with ThreadPoolExecutor(1) as thread:
            try:
                return thread.submit(asyncio.run, ask(calls)).result()
            except CallError as error:
                raise ExplainError(str(error)) from None

    return wait


def not_asked(configured: Sequence[Extender], *, can_be: bool) -> tuple[str, ...]:
    """A note that extenders were not asked; nothing if there are none that judge nodes."""
    urls = [redact_text(one.urlPrefix) for one in configured if one.filterVerb or one.prioritizeVerb]
    if not urls:
        return ()
    which = (
        f"the extender{'s' if len(urls) > 1 else ''} {', '.join(urls)} {'were' if len(urls) > 1 else 'was'} not asked"
    )
    return (f"{which}; --extenders asks." if can_be else f"{which}: a pod group is tried without.",)
