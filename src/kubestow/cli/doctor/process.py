"""The process of `kubestow doctor`: runs the checks in order, prints a line per finding, returns an exit code."""

import asyncio
import platform
import socket
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import click

from kubestow import config
from kubestow.api.failures import CallError, ForbiddenError, TransportError, UnauthorizedError, UntrustedError
from kubestow.cli import configuration_file
from kubestow.cli.doctor.checks import NOTE, OK, PROBLEM, Checks, Finding, Setting
from kubestow.cli.terminal import style
from kubestow.client.access import Access, open_channel
from kubestow.client.api import ApiClient
from kubestow.client.clients import user_agent
from kubestow.client.kubeconfig import find_access
from kubestow.clock import SystemClock
from kubestow.config import ConfigError, SchedulerConfiguration
from kubestow.insight.explain.scheduler_pages import SchedulerPages

_SECONDS = 10.0
_PORT = 10259
_UNTOLD = "to compare, allow the user to get /configz and /metrics there, or run this again as an administrator"
_UNCHECKED = (
    "the lease, and differences from a running kube-scheduler, are not checked: they depend on the configuration"
)
_UNTRUSTED = "name its authority with --certificate-authority, or skip verification with --insecure-skip-tls-verify"
_NO_SCHEDULER = "make sure that --server is the secure port of a running kube-scheduler"
_COLOURS = {OK: "green", NOTE: "yellow", PROBLEM: "red"}


def examine(setting: Setting) -> int:
    """Print the findings; return 1 if there is a problem. A check that is not possible is a problem, too."""
    return asyncio.run(_print_all(setting))


async def _print_all(setting: Setting) -> int:
    levels = []
    async for level, what, advice in _findings(setting):
        levels.append(level)
        click.echo(f"{style(f'{level:8}', fg=_COLOURS[level])}{what}")
        if advice:
            click.echo(f"{'':8}-> {advice}")
    counts = {"check": len(levels), "note": levels.count(NOTE), "problem": levels.count(PROBLEM)}
    click.echo("\n" + ", ".join(f"{count} {word}{'s' * (count != 1)}" for word, count in counts.items()))
    return int(PROBLEM in levels)


async def _findings(setting: Setting) -> AsyncIterator[Finding]:
    yield _machine()
    configuration: SchedulerConfiguration | None = config.default(setting.features)
    if setting.configuration is not None:
        try:
            configuration = configuration_file.load(setting.configuration, setting.features, setting.plugins)
            yield Finding(OK, f"{setting.configuration} is valid")
        except ConfigError as error:
            configuration = None
            for problem in error.problems:
                yield Finding(PROBLEM, f"{setting.configuration}: {problem}", "see docs/reference/configuration.md")
    configured = "" if configuration is None else configuration.clientConnection.kubeconfig
    try:
        access = find_access(setting.kubeconfig or configured, context=setting.context)
        channel = open_channel(access, most_requests=1, clock=SystemClock())
    except CallError as error:
        yield Finding(PROBLEM, str(error), "correct the kubeconfig, or name one with --kubeconfig")
        return
    client = ApiClient(channel, user_agent=user_agent("doctor"), seconds=_SECONDS)
    checks = Checks(client, configuration, setting, time.time)
    try:
        async for finding in _of_api_server(checks, access):
            yield finding
    finally:
        await channel.closed()
    async for finding in _running(checks, access, setting, configuration):
        yield finding
    if configuration is None:
        yield Finding(NOTE, _UNCHECKED, "correct the configuration, and run this again")


async def _of_api_server(checks: Checks, access: Access) -> AsyncIterator[Finding]:
    """Yield what the API server's answers show, until it does not answer or does not accept the user."""
    checked = (checks.version, checks.clock, checks.api_versions, checks.rights, checks.plugins, checks.leader)
    for check in checked:
        try:
            async for finding in check():
                yield finding
        except UnauthorizedError as error:
            what = f"{access.server} does not accept the user of the kubeconfig: {error}"
            yield Finding(PROBLEM, what, "renew the token or the certificate in the kubeconfig")
            return
        except CallError as error:
            advice = "make sure that the server runs and the kubeconfig is correct"
            yield Finding(PROBLEM, f"{access.server}: {error}", advice)
            if isinstance(error, TransportError):
                return


def _machine() -> Finding:
    what = f"Python {platform.python_version()} on {platform.machine()}"
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", _PORT)) == 0:
            advice = "stop it before the new one starts, or choose another --secure-port"
            return Finding(NOTE, f"{what}; another process listens on port {_PORT} here, maybe kube-scheduler", advice)
    return Finding(OK, what)


async def _running(
    checks: Checks, access: Access, setting: Setting, configuration: SchedulerConfiguration | None
) -> AsyncIterator[Finding]:
    """Yield the differences from the running scheduler; only those that need no configuration if there is none."""
    url = setting.server.url
    if not url:
        yield Finding(NOTE, "not compared with a running kube-scheduler", "name its secure port with --server")
        return
    try:
        pages = SchedulerPages(access, setting.server, "doctor")
    except CallError as error:
        yield Finding(PROBLEM, f"nothing is compared: {url}: {error}", _advice(error))
        return
    try:
        async for finding in _differences(checks, pages, configuration, url):
            yield finding
    finally:
        await pages.close()


async def _differences(
    checks: Checks, pages: SchedulerPages, configuration: SchedulerConfiguration | None, url: str
) -> AsyncIterator[Finding]:
    try:
        served = await pages.configuration()
        for finding in checks.plugins_there(served):
            yield finding
        if configuration is not None:
            for finding in (*checks.differences(served), *_conflicts(configuration, served, url)):
                yield finding
    except CallError as error:
        what = "nothing is compared" if isinstance(error, TransportError) else "the configurations are not compared"
        yield Finding(PROBLEM, f"{what}: {url} does not report its configuration: {error}", _advice(error))
        if isinstance(error, TransportError):
            return
    try:
        for finding in checks.gates(await pages.gates()):
            yield finding
    except CallError as error:
        yield Finding(PROBLEM, f"the feature gates are not compared: {url}: {error}", _advice(error))


def _conflicts(configuration: SchedulerConfiguration, served: dict[str, Any], url: str) -> Iterator[Finding]:
    """Yield the problem of two schedulers that schedule the same pods at the same time."""
    names = {profile.get("schedulerName") for profile in served.get("profiles") or ()}
    election, there = configuration.leaderElection, served.get("leaderElection") or {}
    shared = sorted(names & {profile.schedulerName for profile in configuration.profiles})
    pods = f"schedule pods of {', '.join(map(str, shared))}"
    if shared and not there.get("leaderElect"):
        what = f"both {pods}, and the one at {url} does so without holding a lease"
        yield Finding(PROBLEM, what, "stop it before the new one starts, or turn leader election on there")
    elif shared and (there.get("resourceNamespace"), there.get("resourceName")) != (
        election.resourceNamespace,
        election.resourceName,
    ):
        advice = "give both the same lease to replace it, or another schedulerName to run beside it"
        yield Finding(PROBLEM, f"both {pods}, and each has its own lease", advice)


def _advice(error: CallError) -> str:
    """Return advice for a scheduler that does not report its configuration."""
    match error:
        case ForbiddenError() | UnauthorizedError():
            return _UNTOLD
        case UntrustedError():
            return _UNTRUSTED
        case _:
            return _NO_SCHEDULER
