"""The process of `kubestow capacity`: reads files or the live cluster, prints tables or cluster-capacity's JSON."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import click
import msgspec
import yaml

from kubestow import config
from kubestow.api.codec import without_nulls
from kubestow.api.devices import ResourceClaimTemplate
from kubestow.api.failures import CallError, ForbiddenError, NotFoundError
from kubestow.api.files import Decoded, Manifest, ObjectsError, decode, read
from kubestow.api.natural_order import natural
from kubestow.api.node import Node
from kubestow.api.pod import Pod
from kubestow.api.pod_groups import PodGroup, group_key
from kubestow.apiserver.errors import ApiError, invalid
from kubestow.apiserver.objects.intent import Intent
from kubestow.apiserver.objects.writing import check
from kubestow.apiserver.resources import BY_STORAGE
from kubestow.cli.cluster_files import cluster_in
from kubestow.cli.simulate.process import load_configuration, problems
from kubestow.cli.support import CommandError, PollData
from kubestow.client.access import open_channel
from kubestow.client.api import ApiClient
from kubestow.client.clients import user_agent
from kubestow.client.errors import CredentialsError
from kubestow.client.kubeconfig import find_access
from kubestow.client.lists import Lister
from kubestow.client.resources import NODES, PODS, WATCHED, Resource, declared_resources
from kubestow.clock import SystemClock
from kubestow.config import SchedulerConfiguration
from kubestow.config.expansion import enabled_names
from kubestow.insight.explain.reading import RESOURCE_CLAIM_TEMPLATES
from kubestow.plugin.loading import PluginCollection
from kubestow.scheduler.cluster.listers import key_of
from kubestow.simulator.capacity import Capacity, capacity, scheduler
from kubestow.simulator.utilization import HEAD, SORTS, ClusterUtilization, Utilization, cluster_utilization

_LISTED = 10
_FITTED = (Pod, PodGroup, ResourceClaimTemplate)
_MADE = {
    ("v1", "Pod"): BY_STORAGE["pods"],
    ("resource.k8s.io/v1", "ResourceClaimTemplate"): BY_STORAGE["resourceclaimtemplates.resource.k8s.io"],
}
_GANGS = config.Features.parse("GenericWorkload=true,TopologyAwareWorkloadScheduling=true")


@dataclass(frozen=True, slots=True)
class Request:
    """The command line."""

    podspec: tuple[str, ...]
    cluster: tuple[str, ...]
    kubeconfig: str
    context: str
    limit: int
    exclude: tuple[str, ...]
    configuration: str | None
    plugins: PluginCollection
    polled: PollData
    output: str | None
    verbose: bool
    with_pods: bool
    sort: str


def report_capacity(request: Request) -> None:
    """Print the result. Raises CommandError."""
    with problems():
        asked = _asked(request.podspec)
        pods, gang = _pods(request.podspec, asked), _gang(asked)
        features = config.Features() if gang is None else _GANGS
        chosen = load_configuration(request.configuration, request.plugins, features)
        request.polled.require_plugins(request.plugins)
        objects = (
            cluster_in(request.cluster, _warning, request.plugins.declared_kinds)
            if request.cluster
            else asyncio.run(_live(request))
        )
        objects += [obj for obj in asked if isinstance(obj, ResourceClaimTemplate)]
        _warn(objects, request)
        if not pods:
            _print_utilization(cluster_utilization(objects, request.exclude), request)
            return
        _demand_profiles(pods, chosen)
        _demand_templates(pods, objects)
        names = {name for profile in chosen.profiles for name in enabled_names(profile.plugins)}
        own = [one.plugin for one in request.plugins.loaded if one.name in names]
        make = partial(scheduler, chosen, own, features, request.polled.latest)
        found = capacity(objects, pods, request.limit, request.exclude, make, gang)
    if request.output is not None:
        _print_tree(_review(found, request), request.output)
    else:
        _print_capacity(found, request)


def _gang(asked: list[Any]) -> PodGroup | None:
    """Return the gang to place, which has one pod as a template. Raises CommandError."""
    groups = [obj for obj in asked if isinstance(obj, PodGroup)]
    if not groups:
        return None
    (group, *more), pods = groups, [obj for obj in asked if isinstance(obj, Pod)]
    if more or len(pods) != 1 or not group.min_count or group_key(pods[0]) != group.key:
        raise CommandError("--podspec: a pod group must be one gang, with one pod that names it in schedulingGroup")
    if group.parent_key:
        raise CommandError("--podspec: a gang is placed alone: remove spec.parentCompositePodGroupName")
    return group


def _pods(files: tuple[str, ...], asked: list[Any]) -> list[Pod]:
    pods = [obj for obj in asked if isinstance(obj, Pod)]
    if files and not pods:
        raise CommandError(f"{', '.join(files)}: has no pod; --podspec takes manifests of kind Pod")
    names = [pod.metadata.name for pod in pods]
    if len(set(names)) < len(names):
        raise CommandError("--podspec: two pods have the same name; each pod of a mix needs its own")
    return pods


def _asked(files: tuple[str, ...]) -> list[Any]:
    """Return the objects to place, with the defaults of an API server. Raises ObjectsError."""
    found = decode(map(_validated, read(files))) if files else Decoded([], Counter())
    left_out = found.skipped + Counter(type(one).__name__ for one in found.objects if not isinstance(one, _FITTED))
    for kind, count in sorted(left_out.items()):
        _warning(f"--podspec: ignored {count} of kind {kind}; only pods, pod groups and claim templates are used")
    return found.objects


def _validated(manifest: Manifest) -> Manifest:
    resource = _MADE.get((manifest.api_version, manifest.kind))
    if resource is None:
        return manifest
    tree = without_nulls(msgspec.json.decode(manifest.data))
    metadata = tree["metadata"]
    # Objects of a cluster may have fields of another version.
    intent = Intent(validation="Ignore" if metadata.get("uid") else "Strict")
    try:
        causes = check(resource, tree, intent)
        resource.rules.default(tree)
        causes += resource.rules.validate(tree)
        if resource.rules.validate_with_gates is not None:
            causes += resource.rules.validate_with_gates(tree, config.Features())
        if causes:
            raise invalid(resource.group, resource.kind, manifest.name, causes)
    except ApiError as error:
        raise ObjectsError([f"{manifest}: {error.message}"]) from None
    metadata["name"] = manifest.name or f"{manifest.generate_name}xxxxx"
    return manifest._replace(data=msgspec.json.encode(tree))


def _demand_profiles(pods: list[Pod], chosen: SchedulerConfiguration) -> None:
    """Raise CommandError for a pod of another scheduler."""
    names = [profile.schedulerName for profile in chosen.profiles]
    for pod in pods:
        if pod.spec.schedulerName not in names:
            said = f"is {pod.spec.schedulerName!r}, and the configuration has only {', '.join(names)}; see --config"
            raise CommandError(f"--podspec: Pod {pod.metadata.name}: spec.schedulerName: {said}")


def _demand_templates(pods: list[Pod], objects: list[Any]) -> None:
    """Raise CommandError for a claim whose template is missing."""
    there = {key_of(obj) for obj in objects if isinstance(obj, ResourceClaimTemplate)}
    for pod in pods:
        for index, wanted in enumerate(pod.spec.resourceClaims):
            key = f"{pod.metadata.namespace}/{wanted.resourceClaimTemplateName}"
            if wanted.resourceClaimTemplateName and key not in there:
                where = f"Pod {pod.metadata.name}: spec.resourceClaims[{index}].resourceClaimTemplateName"
                raise CommandError(f"--podspec: {where}: there is no ResourceClaimTemplate {key}; add it to the file")


def _warn(objects: list[Any], request: Request) -> None:
    """Warn of likely mistakes."""
    nodes = {obj.metadata.name for obj in objects if isinstance(obj, Node)}
    if not nodes:
        _warning(f"{', '.join(request.cluster) or 'the cluster'}: has no nodes")
        return
    for name in request.exclude:
        if name not in nodes:
            _warning(f"--exclude-nodes: there is no node {name}")


def _warning(message: str) -> None:
    click.echo(f"Warning: {message}", err=True)


async def _live(request: Request) -> list[Any]:
    try:
        access = find_access(request.kubeconfig, context=request.context)
        channel = open_channel(access, clock=SystemClock())
    except CredentialsError as error:
        raise CommandError(str(error)) from None
    try:
        client = ApiClient(channel, user_agent=user_agent("capacity"), seconds=30.0)
        resources = (*WATCHED, RESOURCE_CLAIM_TEMPLATES, *declared_resources(request.plugins.declared_kinds))
        return [obj for resource in resources for obj in await _list(client, resource)]
    except CallError as error:
        raise CommandError(f"{access.server}: {error}") from None
    finally:
        await channel.closed()


async def _list(client: ApiClient, resource: Resource[Any]) -> list[Any]:
    try:
        return (await Lister(client, resource).fetch("0")).objects
    except NotFoundError:
        return []
    except ForbiddenError:
        if resource in (NODES, PODS):
            raise
        click.echo(f"Note: {resource.name} cannot be listed and are ignored", err=True)
        return []


# Utilization


def _print_utilization(found: ClusterUtilization, request: Request) -> None:
    if request.output is not None:
        parts = {"nodes": found.nodes, "nodeGroups": found.kinds, "namespaces": found.namespaces}
        tree: dict[str, Any] = {"total": found.total._asdict()}
        tree |= {
            name: [one._asdict() for one in _ordered(utilizations, request)] for name, utilizations in parts.items()
        }
        _print_tree(tree, request.output)
        return
    rows = [(found.total.name, *found.total.cells())]
    for one in _ordered(found.nodes, request):
        rows.append((one.name, *one.cells()))
        if request.with_pods:
            rows += [(f"  {pod.name}", *pod.cells()) for pod in _ordered(found.pods[one.name], request)]
    _print_table(("NODE", *HEAD), rows)
    for title, utilizations in (("NODE GROUP", found.kinds), ("NAMESPACE", found.namespaces)):
        click.echo()
        _print_table((title, *HEAD), [(one.name, *one.cells()) for one in _ordered(utilizations, request)])


def _ordered(utilizations: list[Utilization], request: Request) -> list[Utilization]:
    return sorted(utilizations, key=SORTS[request.sort])


def _print_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        click.echo("   ".join(cells).rstrip())


# Capacity


def _print_capacity(found: Capacity, request: Request) -> None:
    names, what = ", ".join(found.on_nodes), found.unit
    click.echo(f"{found.replicas} more {f'{what} fits' if found.replicas == 1 else f'{what}s fit'}: {names}")
    if len(found.on_nodes) > 1:
        for name, nodes in found.on_nodes.items():
            click.echo(f"  {nodes.total():6d} of {name}")
    if request.verbose:
        for name, nodes in found.on_nodes.items():
            for node, count in _in_order(nodes):
                click.echo(f"  {count:6d} of {name} on {node}")
    if not found.stopped:
        click.echo(f"Stopped: {found.message}.")
        return
    click.echo(f"The next {found.stopped} does not fit: {found.message}")
    for refusal in found.refusals[:_LISTED]:
        click.echo(f"  {refusal.nodes:6d} x {refusal.kind}: {refusal.reason} ({refusal.plugin})")
    if len(found.refusals) > _LISTED:
        click.echo(f"  ... and {len(found.refusals) - _LISTED} more reasons; -o json shows all")
    for kind, more in found.one_more.items():
        click.echo(f"One more node of {kind} would add {more}.")


def _in_order(nodes: Counter[str]) -> list[tuple[str, int]]:
    return sorted(nodes.items(), key=lambda entry: natural(entry[0]))


def _review(found: Capacity, request: Request) -> dict[str, Any]:
    """Return the result in the fields of cluster-capacity."""
    summary = [{"reason": reason, "count": count} for reason, count in found.reasons.most_common()]
    pods = [
        {
            "podName": name,
            "replicasOnNodes": [{"nodeName": node, "replicas": count} for node, count in _in_order(nodes)],
            "failSummary": summary if name == found.stopped else [],
        }
        for name, nodes in found.on_nodes.items()
    ]
    return {
        "spec": {"replicas": request.limit, "templates": [{"metadata": {"name": name}} for name in found.on_nodes]},
        "status": {
            "replicas": found.replicas,
            "failReason": {"failType": found.fail_type, "failMessage": found.message},
            "pods": pods,
            "refusals": [one._asdict() for one in found.refusals],
            "oneMoreNode": found.one_more,
        },
    }


def _print_tree(tree: Any, form: str) -> None:
    if form == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(tree), indent=2))
    else:
        click.echo(yaml.safe_dump(tree, sort_keys=False), nl=False)
