"""What is watched of an API server, asked for before there is anybody to be told of it."""

import random
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from kubestow.client.access import Access
from kubestow.client.api import ApiClient
from kubestow.client.clients import Clients, open_clients
from kubestow.client.informer import Informer
from kubestow.client.informers import Informers
from kubestow.client.resources import DEVICE_TAINT_RULES, POD_GROUPS, PODS, WATCHED
from kubestow.clock import Clock
from kubestow.config import Features, SchedulerConfiguration
from kubestow.scheduler.extenders.whole_kinds import whole_kinds
from kubestow.telemetry.metrics.client import ClientMetrics


class Watches(msgspec.Struct, frozen=True):
    """The ways to the API server, and what is watched there."""

    clients: Clients
    informers: Informers
    stores: Mapping[str, Informer[Any]]
    """By the resource's name."""


def prepare_watches(
    configuration: SchedulerConfiguration,
    features: Features,
    access: Access,
    clock: Clock,
    metrics: ClientMetrics,
    client: Callable[..., ApiClient] = ApiClient,
) -> Watches:
    """Make what watches all there is to watch; call it inside the running loop. Raises CredentialsError."""
    clients = open_clients(configuration, access, clock, metrics, client)
    informers = Informers(clients.watches, random.random)
    resources = list(WATCHED)
    if features.dra_device_taint_rules:
        resources.append(DEVICE_TAINT_RULES)
    if features.generic_workload:
        resources.append(POD_GROUPS)
    kinds = whole_kinds(configuration.extenders)
    watched = [replace(resource, kind=kinds.get(resource.kind, resource.kind)) for resource in resources]
    # Pods come last: what they refer to is known then, and none of them has to be looked at again for that.
    stores = {resource.name: informers.watch(resource, last=resource.name == PODS.name) for resource in watched}
    return Watches(clients, informers, stores)
