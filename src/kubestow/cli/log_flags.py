"""The flags about logs of commands that are not kube-scheduler's: without -v, only warnings and errors are told."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import click


def log_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flags; it is called with `logs=LogOptions(...)`."""

    @click.option("-v", "--v", "verbosity", type=click.IntRange(0), help="How much news to log.  [default: none]")
    @click.option("--vmodule", default="", metavar="PATTERN=N,...", help="Log more from some modules.")
    @click.option("--logging-format", "form", default="text", show_default=True, type=click.Choice(["text", "json"]))
    @wraps(command)
    def flagged(*, verbosity: int | None, vmodule: str, form: str, **others: Any) -> None:
        # Imported only now: help must not pay for it.
        from kubestow.reporting.log_setup import LogOptions, parse_modules
        from kubestow.reporting.logs import NO_NEWS

        try:
            modules = parse_modules(vmodule)
        except ValueError as error:
            raise click.UsageError(f"--vmodule: {error}") from None
        command(logs=LogOptions(form, NO_NEWS if verbosity is None else verbosity, modules), **others)

    return flagged
