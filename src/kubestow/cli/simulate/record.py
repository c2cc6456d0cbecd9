"""The process of `kubestow record`: writes the objects of a live cluster and all their changes to a file."""

import asyncio
import os
import signal
from pathlib import Path

import click

from kubestow.api.custom_kinds import declared_name
from kubestow.api.failures import CallError
from kubestow.api.files import ObjectsError
from kubestow.cli.simulate.process import load_configuration
from kubestow.cli.support import CommandError
from kubestow.client.clients import user_agent
from kubestow.client.errors import CredentialsError
from kubestow.client.http import HttpClient
from kubestow.client.kubeconfig import find_access
from kubestow.client.resources import declared_resources
from kubestow.clock import SystemClock
from kubestow.config import SchedulerConfiguration
from kubestow.plugin.loading import PluginCollection
from kubestow.simulator.recording.files import RecordingWriter
from kubestow.simulator.recording.following import Custom, check_access, find_custom, follow
from kubestow.simulator.recording.polled import record_polled
from kubestow.simulator.recording.scrubbing import Hasher
from kubestow.telemetry.log_notes import forward_warnings


def run(
    file: Path,
    kubeconfig: str,
    context: str,
    *,
    hash_names: bool,
    plugins: PluginCollection,
    configuration: str | None,
    watch: tuple[str, ...],
) -> None:
    """Record until a signal arrives, also the kinds and polled values of plugins, and what `watch` names.

    Raises CommandError.
    """
    try:
        settings = load_configuration(configuration, plugins)
        asyncio.run(_record(file, kubeconfig, context, settings, hash_names=hash_names, plugins=plugins, watch=watch))
    except (CredentialsError, CallError, ObjectsError) as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(f"{error.filename or file}: {error.strerror}") from None


async def _record(
    file: Path,
    kubeconfig: str,
    context: str,
    configuration: SchedulerConfiguration,
    *,
    hash_names: bool,
    plugins: PluginCollection,
    watch: tuple[str, ...],
) -> None:
    access, clock = find_access(kubeconfig, context=context), SystemClock()
    await check_access(access, clock)
    custom = [Custom(one, declared_name(one.kind)) for one in declared_resources(plugins.declared_kinds)]
    custom += await find_custom(access, clock, watch)
    writer = RecordingWriter(file)
    hasher = Hasher(os.urandom(16)) if hash_names else None

    def note(message: str) -> None:
        click.echo(f"{access.server}: {message}", err=True)

    http = HttpClient(user_agent("record"), clock)
    polling = record_polled(plugins, configuration, writer, clock, http, note, hides_names=hash_names)
    following = asyncio.create_task(follow(access, writer, clock, hasher, note, custom))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, following.cancel)
    try:
        with forward_warnings("kubestow.client", note, clock):
            await following
    except asyncio.CancelledError:
        click.echo(f"Recorded to {file}.", err=True)
    finally:
        polling.close()
        http.close()
