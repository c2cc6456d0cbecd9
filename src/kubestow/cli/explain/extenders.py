"""Extenders in dry runs: called only on request, since they are remote and may not expect dry runs."""

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


def extender_caller(configured: Sequence[Extender]) -> AskNow:
    """Return a function that calls extenders on its own event loop: the caller may have a running loop or none."""

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


def notes_on_uncalled_extenders(configured: Sequence[Extender], *, can_be: bool) -> tuple[str, ...]:
    """Return a note that extenders were not called; nothing if none filters or scores nodes."""
    urls = [redact_text(one.urlPrefix) for one in configured if one.filterVerb or one.prioritizeVerb]
    if not urls:
        return ()
    which = (
        f"the extender{'s' if len(urls) > 1 else ''} {', '.join(urls)} {'were' if len(urls) > 1 else 'was'} not called"
    )
    return (f"{which}; see --extenders." if can_be else f"{which}: pod groups are tried without extenders.",)
