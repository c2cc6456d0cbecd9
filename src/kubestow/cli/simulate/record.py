"""`kubestow record`: records the objects of a live cluster and all their changes in a file."""

import asyncio
import os
import signal
import sys
from pathlib import Path

import click


@click.command("record", context_settings={"max_content_width": 120})
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--kubeconfig", default="", metavar="FILE", help="Kubeconfig of the cluster.")
@click.option("--context", default="", help="Context of the kubeconfig.")
@click.option("--hash-names", is_flag=True, help="Replace names by hashes; requires a new file.")
def command(file: Path, kubeconfig: str, context: str, hash_names: bool) -> None:
    """Record a live cluster until Ctrl-C. Appends to an existing recording.

    Requires only permissions to get, list and watch. Environment, commands and arguments of containers are never
    stored, nor are Secrets and ConfigMaps. `kubestow replay FILE` replays the recording.
    """
    if hash_names and file.exists() and file.stat().st_size:
        # Every run has its own salt, which is not stored.
        raise click.UsageError(f"--hash-names: {file} exists and has hashes with another salt: name a new file")
    # Imported only now: help and usage errors must stay fast.
    from kubestow.api.failures import CallError
    from kubestow.api.files import ObjectsError
    from kubestow.client.errors import CredentialsError
    from kubestow.client.kubeconfig import find_access
    from kubestow.clock import SystemClock
    from kubestow.simulator.recording.files import RecordingWriter
    from kubestow.simulator.recording.following import check_access, follow
    from kubestow.simulator.recording.scrubbing import Hasher
    from kubestow.telemetry.log_notes import forward_warnings

    async def main() -> None:
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

    try:
        asyncio.run(main())
    except (CredentialsError, CallError, ObjectsError) as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
    except OSError as error:
        click.echo(f"Error: {error.filename or file}: {error.strerror}", err=True)
        sys.exit(1)
