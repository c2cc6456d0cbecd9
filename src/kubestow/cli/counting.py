"""How many of many simulations are done, on a terminal."""

import sys

import click


def tell_count(done: int, all_of_them: int) -> None:
    """On one line; nothing where standard error is no terminal."""
    if sys.stderr.isatty():
        click.echo(f"\r{done} of {all_of_them} simulated", nl=done == all_of_them, err=True)
