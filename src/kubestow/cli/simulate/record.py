"""The process of `kubestow record`: writes the objects of a live cluster and all their changes to a file."""

import asyncio
import os
import signal
from pathlib import Path

import click

from kubestow.api.failures import CallError
from kubestow.api.files import ObjectsError
from kubestow.client.errors import CredentialsError
from kubestow.client.kubeconfig import find_access
from kubestow.clock import SystemClock
from kubestow.simulator.recording.files import RecordingWriter
from kubestow.simulator.recording.following import check_access, follow
from kubestow.simulator.recording.scrubbing import Hasher
from kubestow.telemetry.log_notes import forward_warnings


class RecordError(Exception):
    """The cluster cannot be recorded; the message is for the user."""


def run(file: Path, kubeconfig: str, context: str, *, hash_names: bool) -> None:
    """Record until a signal arrives. Raises RecordError."""
    try:
        asyncio.run(_record(file, kubeconfig, context, hash_names=hash_names))
    except (CredentialsError, CallError, ObjectsError) as error:
        raise RecordError(str(error)) from None
    except OSError as error:
        raise RecordError(f"{error.filename or file}: {error.strerror}") from None


async def _record(file: Path, kubeconfig: str, context: str, *, hash_names: bool) -> None:
    access, clock = find_access(kubeconfig, context=context), SystemClock()
    await check_access(access, clock)
    writer = RecordingWriter(file)
    hasher = Hasher(os.urandom(16)) if hash_names else None

    def note(message: str) -> None:
        click.echo(f"{access.server}: {message}", err=True)

    following = asyncio.create_task(follow(access, writer, clock, hasher, note))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, following.cancel)
    try:
        with forward_warnings("kubestow.client", note, clock):
            await following
    except asyncio.CancelledError:
        click.echo(f"Recorded to {file}.", err=True)
