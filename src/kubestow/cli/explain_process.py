"""What `kubestow explain` does: reads the cluster, has the pod explained, and prints it."""

import os
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

import click

from kubestow import config, objects
from kubestow.cli import configuration_file, explain_forms, explain_screen
from kubestow.config import ConfigError, Features
from kubestow.explaining.dry_run import dry_run, take
from kubestow.explaining.explanation import Explanation, explained
from kubestow.explaining.manifests import pods_in
from kubestow.explaining.world import ExplainError, Setup, World
from kubestow.framework.profile import ProfileError
from kubestow.model.pod import Pod
from kubestow.objects import ObjectsError
from kubestow.plugin.loading import PluginCollection
from kubestow.wiring.registry import in_tree_registry


class Request(NamedTuple):
    """What the command line says."""

    pod: str
    files: tuple[str, ...]
    cluster: tuple[str, ...]
    configuration: str | None
    plugins: PluginCollection
    features: Features
    namespace: str
    output: str | None
    node: str
    against: str


def explain(request: Request) -> None:
    """Explain what was asked for; raises ExplainError."""
    found = list(_explanations(request))
    if request.output in ("json", "yaml"):
        click.echo(explain_forms.written(found, request.output), nl=False)
        return
    text = "\n\n".join(explain_screen.lines_of(one, request.node, wide=request.output == "wide") for one in found)
    click.echo(text, color=sys.stdout.isatty() and not os.environ.get("NO_COLOR"))


def _explanations(request: Request) -> Iterator[Explanation]:
    setup = _setup(request)
    if not request.cluster:
        raise ExplainError("give the objects of the cluster with --cluster")
    try:
        loaded = objects.decode(objects.read(request.cluster)).objects
        manifests = objects.read(request.files)
        world = World(setup, loaded, time.time())
    except (ObjectsError, ProfileError) as error:
        raise ExplainError(str(error)) from None
    if manifests:
        pods = pods_in(manifests, world, request.namespace or "default")
        for pod in pods:
            world.add_pending(pod)
    else:
        pods = [_named(request, world)]
    for pod in pods:
        run = dry_run(world, world.take_out(pod))
        yield explained(run, request.against)
        take(run)


def _setup(request: Request) -> Setup:
    path = request.configuration
    try:
        features = request.features
        if path is None:
            configuration = config.default(features)
        else:
            configuration = configuration_file.load(path, features, request.plugins)
    except ConfigError as error:
        raise ExplainError("\n".join(f"{path}: {problem}" for problem in error.problems)) from None
    return Setup(configuration, features, request.plugins.register(in_tree_registry()))


def _named(request: Request, world: World) -> Pod:
    """The pod that the command line names; raises ExplainError."""
    namespace, name = name_of(request.pod, request.namespace)
    if namespace:
        found = world.pod(namespace, name)
        if found is None:
            raise ExplainError(f"there is no pod {namespace}/{name}")
        return found
    everywhere = [pod for pod in world.pods() if pod.metadata.name == name]
    if not everywhere:
        raise ExplainError(f"there is no pod {name} in any namespace")
    if len(everywhere) > 1:
        names = ", ".join(sorted(pod.key for pod in everywhere))
        raise ExplainError(f"pod {name} is ambiguous: say which of {names}")
    return everywhere[0]


def name_of(text: str, namespace: str) -> tuple[str, str]:
    """Namespace, empty if it is not said, and name of a pod; raises ExplainError."""
    given, slash, name = text.rpartition("/")
    if given in ("pod", "pods"):
        given = ""
    if not name or "/" in given or (slash and given and namespace not in ("", given)):
        raise ExplainError(f"{text!r} does not name a pod: write NAMESPACE/POD, or POD and --namespace")
    return given or namespace, name
