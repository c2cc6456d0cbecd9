"""`kubestow plugin`: create, check and list plugins."""

import importlib.util
import inspect
import keyword
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from kubestow.cli.support import CommandGroup
from kubestow.cli.terminal import trusted
from kubestow.config.plugin_points import IN_TREE
from kubestow.plugin.loading import Loaded, PluginLoadError, installed, load

T = TypeVar("T")

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*")


@click.group(cls=CommandGroup)
def command() -> None:
    """Create, check and list scheduler plugins written in Python."""


@command.command()
@click.argument("name")
@click.option(
    "--dir", "folder", type=click.Path(path_type=Path, file_okay=False), default=Path(), help="Folder to use."
)
def new(name: str, folder: Path) -> None:
    """Write a sample plugin and its test. NAME has the form spare-memory or SpareMemory."""
    # Imported only now: other commands do not need it.
    from kubestow.cli.plugin.templates import PLUGIN, TEST

    if not _NAME.fullmatch(name):
        raise click.BadParameter(f"{name!r}: letters and digits, with dashes between words", param_hint="NAME")
    words = [word for part in name.split("-") for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", part)]
    title, module = "".join(word[0].upper() + word[1:] for word in words), "_".join(words).lower()
    if keyword.iskeyword(module) or importlib.util.find_spec(module) is not None:
        raise click.BadParameter(f"{module} is a keyword or an existing module of Python", param_hint="NAME")
    if title in IN_TREE:
        raise click.BadParameter(f"{title} is one of the scheduler's own plugins", param_hint="NAME")
    files = {folder / f"{module}.py": PLUGIN, folder / f"test_{module}.py": TEST}
    for file in files:
        if file.exists():
            raise click.ClickException(f"{file} already exists; choose another name, or remove it")
    folder.mkdir(parents=True, exist_ok=True)
    for file, template in files.items():
        file.write_text(template.format(title=title, module=module), encoding="utf-8")
        click.echo(f"wrote {file}")
    click.echo(f"\nTry it:  kubestow plugin check {folder / module}.py\n         pytest {folder / f'test_{module}.py'}")


@command.command()
@click.argument("file", metavar="FILE|MODULE")
@click.option("--args", "text", metavar="YAML", help="Arguments, as in pluginConfig: '{zone: a}'.")
@click.option(
    "--cluster",
    "files",
    metavar="FILE",
    multiple=True,
    help="Objects to use: nodes, pods, and objects of the kinds that the plugin watches. Its pods without a node are"
    " tried, for plugins that skip the generated ones; repeatable.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of each check.",
)
def check(file: str, text: str | None, files: tuple[str, ...], timeout: float) -> None:
    """Check the plugins in a file: methods, arguments, agreement of forms, unusual objects, and the time per pod.

    Exits with 1 if a check fails.
    """
    from kubestow.cli.plugin.check import Found, time_limit

    args = _arguments(text)
    try:
        with time_limit(timeout, file):
            found = load(file)
    except (PluginLoadError, Found) as error:
        click.echo(f"wrong: {error}")
        sys.exit(1)
    results = [_check(loaded, args, files, timeout) for loaded in found]
    sys.exit(0 if all(results) else 1)


def _arguments(text: str | None) -> Any:
    from kubestow.api.files.errors import DocumentError
    from kubestow.api.files.yaml_documents import yaml_documents

    try:
        first = next(yaml_documents(text or ""), None)
    except DocumentError as error:
        raise click.BadParameter(str(error), param_hint="--args") from None
    return None if first is None else first.tree


def _check(loaded: Loaded, args: Any, files: tuple[str, ...], timeout: float) -> bool:
    from kubestow.cli.plugin import check as plugin_check
    from kubestow.scheduler.framework.registry import points_of

    click.echo(f"{loaded.name} ({loaded.source}): {', '.join(sorted(points_of(loaded.plugin)))}")
    file = inspect.getsourcefile(loaded.plugin) or ""

    def made(name: str, step: Callable[..., T], *more: Any) -> T:
        with _progress(f"  {name} ..."), plugin_check.time_limit(timeout, file):
            return step(loaded, args, *more)

    try:
        click.echo(f"  ok: {made('arguments', plugin_check.check_args)}")
        click.echo(f"  ok: {made('agreement of forms', plugin_check.check_agreement, files)}")
        click.echo(f"  ok: {made('unusual objects', plugin_check.check_odd_objects)}")
        costs = made(f"time per pod at {plugin_check.NODES:,} nodes", plugin_check.costs, files)
    except plugin_check.Found as found:
        click.echo(f"  wrong: {found}")
        return False
    click.echo(f"\n  A pod at {plugin_check.NODES:,} nodes, all of them evaluated, in microseconds:")
    for cost in costs:
        mark = "  <-- this one" if cost.plugin == loaded.name else ""
        click.echo(f"    {cost.plugin:<32}{cost.form:<8}{cost.micros:>10,.0f}{mark}")
    for cost in costs:
        if cost.plugin == loaded.name and cost.advice:
            click.echo(f"\n  slow: {cost.advice}")
        if cost.plugin == loaded.name and cost.skips:
            click.echo("\n  note: its pre_filter skips this pod; --cluster FILE gives objects and pods of your own")
    return True


@contextmanager
def _progress(text: str) -> Iterator[None]:
    """Show what is under way, if standard error is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    click.echo(text, nl=False, err=True)
    try:
        yield
    finally:
        click.echo(trusted("\r\x1b[K"), nl=False, err=True, color=True)


@command.command()
@click.argument("files", metavar="FILE|MODULE...", nargs=-1, required=True)
@click.option("--name", default="kubestow-plugins", show_default=True, help="Name of the ClusterRole.")
@click.option("--helm", is_flag=True, help="Print the value extraRules of the Helm chart instead.")
def rbac(files: tuple[str, ...], name: str, helm: bool) -> None:
    """Print a ClusterRole that lets the scheduler watch and write the kinds of plugins.

    It has to be bound to the user or service account of the scheduler.
    """
    # Imported only now: other commands do not need them.
    import yaml

    from kubestow.scheduler.framework.declarations import permissions_for, watches_of

    try:
        found = [loaded for file in files for loaded in load(file)]
    except PluginLoadError as error:
        raise click.ClickException(str(error)) from None
    verbs: dict[tuple[str, str], list[str]] = {}
    for group, resource, verb in permissions_for(one for loaded in found for one in watches_of(loaded.plugin)):
        verbs.setdefault((group, resource), []).append(verb)
    if not verbs:
        raise click.ClickException(f"{', '.join(loaded.name for loaded in found)}: no kind in `watches` needs a rule")
    rules = [
        {"apiGroups": [group], "resources": [resource], "verbs": listed} for (group, resource), listed in verbs.items()
    ]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": rules,
    }
    click.echo(yaml.safe_dump({"extraRules": rules} if helm else role, sort_keys=False), nl=False)


@command.command("list")
@click.option("--plugin", "sources", metavar="FILE|MODULE", multiple=True, help="List these also; repeatable.")
def list_plugins(sources: tuple[str, ...]) -> None:
    """List the plugins that a configuration can name, with their sources and extension points."""
    from kubestow.scheduler.framework.registry import points_of

    rows = [(name, "kubestow", points) for name, points in sorted(IN_TREE.items())]
    try:
        others = [*installed(), *(loaded for source in sources for loaded in load(source))]
    except PluginLoadError as error:
        raise click.ClickException(str(error)) from None
    rows += [(loaded.name, loaded.source, points_of(loaded.plugin)) for loaded in others]
    names, places = max(len(row[0]) for row in rows) + 2, max(len(row[1]) for row in rows) + 2
    for name, source, points in rows:
        click.echo(f"{name:<{names}}{source:<{places}}{', '.join(sorted(points))}")
