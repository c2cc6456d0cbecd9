"""The process of `kubestow explain`: reads the cluster, explains pods, and prints the result.

files --------------------------+
                                +--> world --> dry run --> what would help --> screen, JSON or YAML
API server, as the caller may --+                                  |
                                                                   |
the scheduler: its record of the pod, its configuration -----------+
"""

import asyncio
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import click
import msgspec

from kubestow import config
from kubestow.api import files as objects
from kubestow.api.failures import CallError
from kubestow.api.files import Manifest, ObjectsError
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import PodGroup, group_key, group_name
from kubestow.api.priority import pod_is_terminal
from kubestow.cli import configuration_file
from kubestow.cli.cluster_files import cluster_in
from kubestow.cli.explain import screen as explain_screen
from kubestow.cli.explain.extenders import extender_caller, notes_on_uncalled_extenders
from kubestow.cli.explain.group_screen import group_lines_of
from kubestow.cli.explain.overview_screen import overview_lines_of
from kubestow.cli.explain.patches import patch_lines
from kubestow.cli.explain.pending import NoPendingError, overview_of
from kubestow.cli.explain.request import Request
from kubestow.cli.explain.running_scheduler import RunningScheduler, ServedSettings, parse_reported_configuration
from kubestow.cli.terminal import trusted
from kubestow.client.access import Access
from kubestow.client.clients import user_agent
from kubestow.client.http import HttpClient
from kubestow.client.kubeconfig import find_access
from kubestow.clock import SystemClock
from kubestow.config import ConfigError, Features
from kubestow.config.writing import yaml_text
from kubestow.insight.decisions.schema import ERROR, SCHEDULED, VERSION
from kubestow.insight.explain.dry_run import DryRun, assume_and_reserve
from kubestow.insight.explain.explanation import (
    Explanation,
    GroupExplanation,
    explain_group_run,
    explain_without_profile,
    explained,
)
from kubestow.insight.explain.group_run import GroupRun, assume_group
from kubestow.insight.explain.manifests import read_pods
from kubestow.insight.explain.names import absent, did_you_mean, nearest
from kubestow.insight.explain.overview import PendingOverview
from kubestow.insight.explain.owners import path_of_owners
from kubestow.insight.explain.reading import LiveCluster, NodesForbiddenError, NoPodError, Reading
from kubestow.insight.explain.scheduler_pages import check_ca_file
from kubestow.insight.explain.world import ExplainError, NoProfileError, Setup, World
from kubestow.scheduler.background import SinglePolls
from kubestow.scheduler.cluster.listers import key_of
from kubestow.scheduler.framework.profile import ProfileError
from kubestow.scheduler.in_tree import in_tree_registry
from kubestow.telemetry.metrics.scheduler import SchedulerMetrics

_MOST_SIMILAR = 3
_WATCH_SECONDS = 2.0
_SETTINGS_SECONDS = 30.0
_CLEAR = trusted("\x1b[2J\x1b[H")
_FAILS = "a dry run, with the configuration, plugins and feature gates that are available here, fails:"
_GONE = ("the pod no longer exists; this is the last decision about it.",)
_SENT_BY_ANOTHER = "the scheduler's record is older: another scheduler bound the pod; this is a dry run."
_FITS_NOW: tuple[str, ...] = ("the cluster has changed since: it would fit now, and will be tried again.",)
_GROUPS_OFF = (
    "the scheduler's gate GenericWorkload is off: it ignores pod groups; here they are tried as if it were on."
)


Explained = Explanation | GroupExplanation | PendingOverview
"""What is printed."""


def explain(request: Request) -> None:
    """Run a request. Raises ExplainError."""
    if request.cluster:
        print_text(_form(request, _offline(request)))
        return
    try:
        asyncio.run(_live(request))
    except CallError as error:
        raise ExplainError(str(error)) from None
    except KeyboardInterrupt:
        return


def _form(request: Request, found: Sequence[Explained]) -> str:
    if request.patch:
        return "".join(f"{line}\n" for one in found for line in patch_lines(one))
    # A node that is unknown is an error in every form.
    alone = [_for_node(one, request.node) for one in found] if request.node else found
    if request.output not in ("json", "yaml"):
        return "\n\n".join(_screen(request, one) for one in found) + "\n"
    trees = [one.tree() for one in alone]
    # One explanation is a document by itself, several are a list of items.
    document: Any = trees[0] if len(trees) == 1 else {"version": VERSION, "items": trees}
    if request.output == "yaml":
        return yaml_text(document)
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode() + "\n"


def _for_node(one: Explained, node: str) -> Explained:
    return one if isinstance(one, PendingOverview) else one.for_node(node)


def _screen(request: Request, one: Explained) -> str:
    wide = request.output == "wide"
    if isinstance(one, GroupExplanation):
        return group_lines_of(one, wide=wide)
    if isinstance(one, PendingOverview):
        return overview_lines_of(one, wide=wide or bool(request.owner[0]))
    return explain_screen.lines_of(one, request.node, wide=wide)


def print_text(text: str, *, clear: bool = False) -> None:
    """Print a text, with colours on a terminal; `clear` clears the terminal first."""
    on_screen = sys.stdout is not None and sys.stdout.isatty()
    if clear and on_screen:
        click.echo(_CLEAR, nl=False, color=True)
    click.echo(text, nl=False, color=on_screen and not os.environ.get("NO_COLOR"))


# Files


def _offline(request: Request) -> list[Explained]:
    manifests = _manifests(request)
    try:
        loaded = cluster_in(request.cluster, declared=_kinds(request))
    except ObjectsError as error:
        raise ExplainError(str(error)) from None
    with_groups = _have_groups(manifests) or any(isinstance(obj, PodGroup) for obj in loaded)
    setup, _ = _setup(request, ServedSettings(), with_groups=with_groups)
    request.polled.require_plugins(request.plugins)
    polls = SinglePolls(request.polled.latest)
    world = _world(setup, loaded, polls)
    try:
        polls.take_given(world.now)
    except ValueError as error:
        raise ExplainError(f"--poll-data: {error}") from None
    pods = read_pods(manifests, world, request.namespace or "default") if manifests else []
    notes: tuple[str, ...] = () if world.cluster.nodes.count else (f"{', '.join(request.cluster)} has no nodes.",)
    if request.is_overview:
        return [overview_of(request, world, request.namespace, notes)]
    if request.group:
        group = _named_group(request, world, "")
        notes += notes_on_uncalled_extenders(world.extenders, can_be=False)
        return [explain_group_run(GroupRun(world, group), request.against, notes)]
    if pods:
        found = list(_tried(request, world, pods, notes))
    else:
        pod = _named(request, world)
        notes += _notes(pod) + _unasked(request, world)
        found = [_explained(request, world, pod, notes)[0]]
    if request.node and _is_strange(request.node, found) and world.cluster.node(request.node) is None:
        raise ExplainError(absent("node", request.node, world.cluster.nodes.row_of))
    return found


def _is_strange(node: str, found: Iterable[Explained]) -> bool:
    """Return whether no explanation covers a node, so that it may not exist."""
    return not any(not isinstance(one, Explanation) or one.has_node(node) for one in found)


def _manifests(request: Request) -> list[Manifest]:
    try:
        return objects.read(request.files)
    except ObjectsError as error:
        raise ExplainError(str(error)) from None


def _have_groups(manifests: Iterable[Manifest]) -> bool:
    return any(one.kind == "PodGroup" or b'"schedulingGroup"' in bytes(one.data) for one in manifests)


def _setup(request: Request, served: ServedSettings, *, with_groups: bool) -> tuple[Setup, tuple[str, ...]]:
    """Return the setup from the command line, else from the running scheduler, and notes. Raises ExplainError."""
    features = request.features or Features.running(served.gates or {})
    notes = served.notes
    if with_groups and not features.generic_workload:
        # With pod groups, the gates of pod groups are on, unless the command line sets gates.
        notes += (_GROUPS_OFF,) if served.gates is not None else ()
        features = msgspec.structs.replace(
            features,
            generic_workload=True,
            topology_aware_workload_scheduling=True,
            composite_pod_group=True,
            dra_workload_resource_claims=True,
        )
    if request.configuration is not None:
        try:
            configuration = configuration_file.load(request.configuration, features, request.plugins)
        except ConfigError as error:
            raise ExplainError("\n".join(f"{request.configuration}: {one}" for one in error.problems)) from None
    elif served.configuration is not None:
        configuration, more = parse_reported_configuration(served.configuration, features, request.plugins)
        notes += more
    else:
        configuration = config.default(features)
    return Setup(configuration, features, request.plugins.register(in_tree_registry())), notes


def _kinds(request: Request) -> tuple[type, ...]:
    """Return the kinds of the plugins, including the installed ones that the configuration names."""
    if request.configuration is not None:
        with suppress(ConfigError):  # reported by `_setup`
            configuration_file.load(request.configuration, request.features or Features(), request.plugins)
    return request.plugins.declared_kinds


def _world(setup: Setup, loaded: list[object], polls: SinglePolls) -> World:
    try:
        return World(setup, loaded, time.time(), polls)
    except ProfileError as error:
        raise ExplainError(str(error)) from None


def _tried(request: Request, world: World, pods: list[Pod], notes: tuple[str, ...] = ()) -> Iterator[Explained]:
    """Explain pods that do not exist in order, each placed before the next is tried; groups as a whole."""
    on_nodes = {pod.key: node for pod in pods if (node := world.remove_placed(pod))}
    for pod in pods:
        world.add_pending(pod)
    for pod in pods:
        group = None if world.cluster.groups is None else world.cluster.groups.group_of(pod)
        if pod.key not in world.pending:
            # It was tried with its group.
            continue
        if group is not None:
            together = GroupRun(world, group)
            yield explain_group_run(
                together, request.against, notes + notes_on_uncalled_extenders(world.extenders, can_be=False)
            )
            assume_group(together)
        else:
            about = _replaced(on_nodes.get(pod.key)) + _priority(world, pod) + _claims(pod) + _unasked(request, world)
            explanation, run = _explained(request, world, pod, notes + about)
            yield explanation
            if run is not None:
                assume_and_reserve(run)


def _replaced(node: str | None) -> tuple[str, ...]:
    return () if node is None else (f"a pod with this name is on node {node}; this pod is tried in its place.",)


def _priority(world: World, pod: Pod) -> tuple[str, ...]:
    name = pod.spec.priorityClassName
    if not name or name in world.priority_classes or pod.spec.priority:
        return ()
    return (f"priority class {name} is unknown here; priority 0 is used.",)


def _claims(pod: Pod) -> tuple[str, ...]:
    made = {one.name for one in pod.status.resourceClaimStatuses}
    missing = (one for one in pod.spec.resourceClaims if one.resourceClaimTemplateName and one.name not in made)
    templates = (f"{pod.metadata.namespace}/{one.resourceClaimTemplateName}" for one in missing)
    return tuple(f"there is no ResourceClaimTemplate {template} here." for template in templates)


def _explained(request: Request, world: World, pod: Pod, notes: tuple[str, ...]) -> tuple[Explanation, DryRun | None]:
    """Return the explanation of a pod with its dry run, None if no profile schedules it. Raises ExplainError."""
    try:
        run = _dry_run(request, world, pod)
    except NoProfileError as error:
        return explain_without_profile(world, pod, error, notes), None
    return explained(run, request.against, notes), run


def _dry_run(request: Request, world: World, pod: Pod) -> DryRun:
    try:
        return DryRun(
            world, world.remove_for_scheduling(pod), extender_caller(world.extenders) if request.extenders else None
        )
    except NoProfileError as error:
        if request.configuration is not None or error.similar:
            raise
        raise ExplainError(f"{error}; name the configuration of its scheduler with --config") from None


def _unasked(request: Request, world: World) -> tuple[str, ...]:
    return () if request.extenders else notes_on_uncalled_extenders(world.extenders, can_be=True)


def _named(request: Request, world: World) -> Pod:
    """Return the pod that the command line names. Raises ExplainError."""
    namespace, name = _name_of(request)
    found = [pod for pod in world.pods() if pod.metadata.name == name and namespace in ("", pod.metadata.namespace)]
    if not found:
        if namespace and namespace not in world.namespaces:
            raise ExplainError(absent("namespace", namespace, world.namespaces))
        near = [pod.key for pod in world.pods() if namespace in ("", pod.metadata.namespace)]
        similar = nearest(f"{namespace}/{name}", near) if namespace else _of_any_namespace(name, near)
        what = f"there is no pod {namespace}/{name}" if namespace else f"no namespace has a pod {name}"
        raise ExplainError(f"{what}{did_you_mean(similar)}")
    if len(found) > 1:
        names = ", ".join(sorted(pod.key for pod in found))
        raise ExplainError(f"pod {name} is ambiguous: choose one of {names}")
    return found[0]


def _of_any_namespace(name: str, keys: Iterable[str]) -> list[str]:
    """Return the pods, by namespace/name, whose names are nearest to one."""
    names = {key: key.partition("/")[2] for key in keys}
    near = nearest(name, names.values())
    return [key for key, one in names.items() if one in near][:_MOST_SIMILAR]


def _named_group(request: Request, world: World, default: str) -> PodGroup:
    """Return the pod group that the command line names. Raises ExplainError."""
    namespace = request.namespace or default
    groups = world.cluster.listers.pod_groups
    found = [one for one in groups if one.metadata.name == request.group and namespace in ("", one.metadata.namespace)]
    if not found and groups.unreadable:
        raise ExplainError(f"pod groups cannot be listed: {groups.unreadable}")
    if len(found) != 1:
        names = ", ".join(sorted(one.key for one in found))
        where = f" in {namespace}" if namespace else ""
        known = [one.metadata.name for one in groups if namespace in ("", one.metadata.namespace)]
        missing = absent("pod group", request.group, known, where)
        raise ExplainError(f"pod group {request.group} is ambiguous: choose one of {names}" if found else missing)
    return found[0]


def _name_of(request: Request) -> tuple[str, str]:
    """Return the namespace, empty if not given, and the name of a pod. Raises ExplainError."""
    given, _, name = request.pod.rpartition("/")
    given = "" if given in ("pod", "pods") else given
    if not name or "/" in given:
        raise ExplainError(f"{request.pod!r} does not name a pod: write NAMESPACE/POD, or POD and --namespace")
    if given and request.namespace not in ("", given):
        raise ExplainError(f"{request.pod!r} is not in the namespace that --namespace names, {request.namespace}")
    return given or request.namespace, name


def _notes(pod: Pod) -> tuple[str, ...]:
    if pod.spec.nodeName:
        where = "has finished on node {}" if pod_is_terminal(pod) else "is on node {} already"
        return (f"it {where.format(pod.spec.nodeName)}; this is where it would go if it were scheduled now.",)
    name = group_name(pod)
    command = f"kubestow explain podgroup/{name} -n {pod.metadata.namespace}"
    return (f"it is scheduled together with its pod group; see {command}",) if name else ()


# A live cluster


async def _live(request: Request) -> None:
    check_ca_file(request.server)
    access = find_access(request.kubeconfig, context=request.context)
    manifests = _manifests(request)
    live = _Live(request, access)
    shown: list[Explained] = []
    try:
        while True:
            found = await live.explanations(manifests)
            news = [one.without_times() for one in found]
            if news != shown:
                print_text(_form(request, found), clear=request.watch)
            if not request.watch:
                return
            shown = news
            await pause(_WATCH_SECONDS)
    finally:
        await live.close()


async def pause(seconds: float) -> None:
    """Wait between two reads of the cluster."""
    await asyncio.sleep(seconds)


class _Live:
    """A live cluster and its scheduler, for one request. Create it inside the running event loop."""

    def __init__(self, request: Request, access: Access) -> None:
        self._request = request
        self._namespace = access.namespace or "default"
        self._cluster = LiveCluster(access)
        self._scheduler = RunningScheduler(access, request.server)
        self._http = HttpClient(user_agent("explain"), SystemClock())
        self._fits_now = _FITS_NOW
        self._settings: tuple[float, ServedSettings] | None = None
        self._last_overview: tuple[list[tuple[type, str, str]], PendingOverview] | None = None

    async def close(self) -> None:
        self._http.close()
        await self._scheduler.close()
        await self._cluster.close()

    async def explanations(self, manifests: list[Manifest]) -> Sequence[Explained]:
        """Return the current explanations. Raises ExplainError."""
        found, node = await self._explanations(manifests), self._request.node
        if node and _is_strange(node, found) and await self._cluster.is_node_missing(node):
            raise ExplainError(absent("node", node, await self._cluster.names("/api/v1/nodes") or ()))
        return found

    async def _explanations(self, manifests: list[Manifest]) -> Sequence[Explained]:
        request = self._request
        if manifests:
            with_templates = any(b'"resourceClaimTemplateName"' in bytes(one.data) for one in manifests)
            reading, world = await self._read(with_groups=_have_groups(manifests), with_templates=with_templates)
            pods = read_pods(manifests, world, request.namespace or self._namespace)
            return list(_tried(request, world, pods, reading.notes))
        if request.is_overview:
            return [await self._overview()]
        if request.group:
            reading, world = await self._read(with_groups=True)
            return [await self._group(reading, world)]
        return [await self._pod()]

    async def _overview(self) -> PendingOverview:
        """Return the overview; the previous one if no object has changed since."""
        request = self._request
        reading, setup = await self._objects(with_groups=False)
        revision = [(type(one), key_of(one), one.metadata.resourceVersion) for one in reading.objects]
        if self._last_overview is None or self._last_overview[0] != revision:
            namespace = "" if request.all_namespaces else request.namespace or self._namespace
            reading, world = await self._world_of(reading, setup)
            try:
                overview = overview_of(request, world, namespace, reading.notes)
            except NoPendingError as error:
                path = path_of_owners(request.owner[0], namespace)
                raise ExplainError(error.among(await self._cluster.names(path) or ())) from None
            self._last_overview = revision, overview
        return self._last_overview[1]

    async def _pod(self) -> Explanation:
        request = self._request
        namespace, name = _name_of(request)
        namespace = namespace or self._namespace
        try:
            pod = await self._cluster.pod(namespace, name)
        except NoPodError:
            decision, *_ = await self._scheduler.record(lambda pages: pages.last_decision_by_name(namespace, name))
            if decision is None or decision.outcome != SCHEDULED or request.against:
                raise
            return Explanation(decision, "scheduler", notes=_GONE)
        decision, notes, is_silent = await self._scheduler.record(lambda pages: pages.recorded(pod))
        if decision is not None and pod.spec.nodeName not in ("", decision.chosen):
            decision, notes = None, (*notes, _SENT_BY_ANOTHER)
        if decision is not None and (decision.outcome == SCHEDULED or pod.spec.nodeName) and not request.against:
            return Explanation(decision, "scheduler")
        try:
            reading, world = await self._read(with_groups=bool(group_name(pod)), is_silent=is_silent)
        except NodesForbiddenError as error:
            if decision is None or request.against:
                raise
            return Explanation(decision, "scheduler", notes=(f"what would help was not computed: {error}",))
        try:
            dry_run = _dry_run(request, world, pod)
        except NoProfileError as error:
            return explain_without_profile(world, pod, error, notes + reading.notes)
        if dry_run.gated is not None and not is_silent:
            # The scheduler does not try the pod, so it has no record of it.
            notes = ()
        notes += reading.notes + _notes(pod)
        run = explained(dry_run, request.against, notes + _unasked(request, world))
        if decision is None or request.against:
            return run
        if run.decision.outcome == SCHEDULED and not group_name(pod) and not decision.feasible:
            notes += _unasked(request, world) or self._fits_now
        if run.decision.outcome == ERROR and decision.outcome != ERROR:
            notes += (f"what would help is unknown: {_FAILS} {run.decision.message}",)
        return run._replace(decision=decision, source="scheduler", notes=notes)

    async def _group(self, reading: Reading, world: World) -> GroupExplanation:
        request = self._request
        group = _named_group(request, world, self._namespace)
        decision, notes, _ = await self._scheduler.record(lambda pages: pages.recorded_group(group))
        waits = any(group_key(pod) == group.key for pod in world.pending.values())
        if decision is not None and (decision.outcome == SCHEDULED or not waits) and not request.against:
            return GroupExplanation(decision, "scheduler")
        for kind, problem in reading.unreadable:
            if kind is Pod:
                raise ExplainError(f"pods cannot be listed: {problem}")
        notes += reading.notes
        unasked = notes_on_uncalled_extenders(world.extenders, can_be=False)
        run = explain_group_run(GroupRun(world, group), request.against, notes + unasked)
        if decision is None or request.against:
            return run
        if run.decision.outcome == SCHEDULED:
            notes += unasked or self._fits_now
        return run._replace(decision=decision, source="scheduler", notes=notes)

    async def _read(
        self, *, with_groups: bool, with_templates: bool = False, is_silent: bool = False
    ) -> tuple[Reading, World]:
        reading, setup = await self._objects(
            with_groups=with_groups, with_templates=with_templates, is_silent=is_silent
        )
        return await self._world_of(reading, setup)

    async def _objects(
        self, *, with_groups: bool, with_templates: bool = False, is_silent: bool = False
    ) -> tuple[Reading, Setup]:
        """Read the cluster and the scheduler's configuration concurrently."""
        request = self._request
        asking = asyncio.create_task(self._served(is_silent=is_silent))
        try:
            reading = await self._cluster.read(with_templates=with_templates)
            setup, notes = _setup(request, await asking, with_groups=with_groups)
        finally:
            asking.cancel()
        # With other settings than those of the scheduler, it need not fit there.
        self._fits_now = () if notes else _FITS_NOW
        # Only now: the configuration may name installed plugins.
        more = await self._cluster.read_configured(setup.features, request.plugins.declared_kinds)
        request.polled.require_plugins(request.plugins)
        return Reading([], notes).union(reading).union(more), setup

    async def _served(self, *, is_silent: bool) -> ServedSettings:
        """Return the settings that the scheduler serves; they are read again after half a minute, to save its time."""
        request, now = self._request, time.monotonic()
        if self._settings is None or now - self._settings[0] > _SETTINGS_SECONDS:
            found = await self._scheduler.settings(
                configuration=request.configuration is None, gates=request.features is None, is_silent=is_silent
            )
            self._settings = now, found
        return self._settings[1]

    async def _world_of(self, reading: Reading, setup: Setup) -> tuple[Reading, World]:
        """Return the world of the objects that were read; the reading, with the problems of polls, comes with it."""
        polls = SinglePolls(self._request.polled.latest, self._http)
        world = _world(setup, reading.objects, polls)
        for kind, problem in reading.unreadable:
            world.set_unreadable(kind, problem)
        try:
            problems = await polls.obtain(world.now, SchedulerMetrics())
        except ValueError as error:
            raise ExplainError(f"--poll-data: {error}") from None
        return reading.union(Reading([], tuple(problems))), world
