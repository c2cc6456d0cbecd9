"""The process of `kubestow doctor`: runs the checks in order, prints a line per finding, returns an exit code."""

import asyncio
import platform
import socket
import time
from collections.abc import AsyncIterator
from typing import Any

import click

from kubestow import config
from kubestow.api.failures import CallError, ForbiddenError, UnauthorizedError, UntrustedError
from kubestow.cli import configuration_file
from kubestow.cli.doctor.checks import NOTE, OK, PROBLEM, Checks, Finding, Setting
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
_UNCHECKED = "permissions, the lease and the running kube-scheduler are not checked: they depend on the configuration"
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
        click.echo(f"{click.style(f'{level:8}', fg=_COLOURS[level])}{what}")
        if advice:
            click.echo(f"{'':8}-> {advice}")
    counts = {"check": len(levels), "note": levels.count(NOTE), "problem": levels.count(PROBLEM)}
    click.echo("\n" + ", ".join(f"{count} {word}{'s' * (count != 1)}" for word, count in counts.items()))
    return int(PROBLEM in levels)


async def _findings(setting: Setting) -> AsyncIterator[Finding]:
    yield _machine()
    configuration, valid = config.default(setting.features), True
    if setting.configuration is not None:
        try:
            configuration = configuration_file.load(setting.configuration, setting.features, setting.plugins)
            yield Finding(OK, f"{setting.configuration} is valid")
        except ConfigError as error:
            valid = False
            for problem in error.problems:
                yield Finding(PROBLEM, f"{setting.configuration}: {problem}", "see docs/reference/configuration.md")
    try:
        access = find_access(setting.kubeconfig or configuration.clientConnection.kubeconfig, context=setting.context)
        channel = open_channel(access, most_requests=1, clock=SystemClock())
    except CallError as error:
        yield Finding(PROBLEM, str(error), "correct the kubeconfig, or name one with --kubeconfig")
        return
    try:
        client = ApiClient(channel, user_agent=user_agent("doctor"), seconds=_SECONDS)
        checks = Checks(client, configuration, setting, time.time)
        for check in (checks.version, checks.clock, checks.api_versions):
            async for finding in check():
                yield finding
        if not valid:
            yield Finding(NOTE, _UNCHECKED, "correct the configuration, and run this again")
            return
        for check in (checks.rights, checks.leader):
            async for finding in check():
                yield finding
        async for finding in _running(checks, access, setting, configuration):
            yield finding
    except UnauthorizedError as error:
        what = f"{access.server} does not accept the user of the kubeconfig: {error}"
        yield Finding(PROBLEM, what, "renew the token or the certificate in the kubeconfig")
    except CallError as error:
        yield Finding(
            PROBLEM, f"{access.server}: {error}", "make sure that the server runs and the kubeconfig is correct"
        )
    finally:
        await channel.closed()


def _machine() -> Finding:
    what = f"Python {platform.python_version()} on {platform.machine()}"
    with socket.socket() as probe:
        if probe.connect_ex(("127.0.0.1", _PORT)) == 0:
            advice = "stop it before the new one starts, or choose another --secure-port"
            return Finding(NOTE, f"{what}; another process listens on port {_PORT} here, maybe kube-scheduler", advice)
    return Finding(OK, what)


async def _served_configuration(access: Access, setting: Setting) -> tuple[dict[str, Any], dict[str, bool]]:
    """Return the configuration and feature gates of the running scheduler."""
    pages = SchedulerPages(access, setting.server, "doctor")
    try:
        return await pages.configuration(), await pages.gates()
    finally:
        await pages.close()


async def _running(
    checks: Checks, access: Access, setting: Setting, configuration: SchedulerConfiguration
) -> AsyncIterator[Finding]:
    """Yield the differences from the running scheduler."""
    if not setting.server.url:
        yield Finding(NOTE, "not compared with a running kube-scheduler", "name its secure port with --server")
        return
    try:
        served, gates = await _served_configuration(access, setting)
    except CallError as error:
        what = f"nothing is compared: {setting.server.url} does not report its configuration: {error}"
        yield Finding(PROBLEM, what, _advice(error))
        return
    for finding in (*checks.plugins_there(served), *checks.differences(served), *checks.gates(gates)):
        yield finding
    names = {profile.get("schedulerName") for profile in served.get("profiles") or ()}
    election, there = configuration.leaderElection, served.get("leaderElection") or {}
    shared = sorted(names & {profile.schedulerName for profile in configuration.profiles})
    pods = f"schedule pods of {', '.join(map(str, shared))}"
    if shared and not there.get("leaderElect"):
        what = f"both {pods}, and the one at {setting.server.url} does so without holding a lease"
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
