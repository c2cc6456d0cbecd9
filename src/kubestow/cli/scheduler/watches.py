"""Watches of the API server. They can start before the scheduler that handles them exists."""

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
    """The clients of the API server, and the informers."""

    clients: Clients
    informers: Informers
    stores: Mapping[str, Informer[Any]]
    """Informers by the plural name of their resource."""


def prepare_watches(
    configuration: SchedulerConfiguration,
    features: Features,
    access: Access,
    clock: Clock,
    metrics: ClientMetrics,
    client: Callable[..., ApiClient] = ApiClient,
) -> Watches:
    """Create informers of all resources, inside the running event loop. Raises CredentialsError."""
    clients = open_clients(configuration, access, clock, metrics, client)
    informers = Informers(clients.watches, random.random)
    resources = list(WATCHED)
    if features.dra_device_taint_rules:
        resources.append(DEVICE_TAINT_RULES)
    if features.generic_workload:
        resources.append(POD_GROUPS)
    kinds = whole_kinds(configuration.extenders)
    watched = [replace(resource, kind=kinds.get(resource.kind, resource.kind)) for resource in resources]
    # Pods are last: the objects they refer to are known then, so that no pod is evaluated twice.
    stores = {resource.name: informers.watch(resource, last=resource.name == PODS.name) for resource in watched}
    return Watches(clients, informers, stores)
