"""Watches of the API server. They can start before the scheduler that handles them exists."""

import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from kubestow.client.access import Access
from kubestow.client.api import ApiClient
from kubestow.client.clients import Clients, open_clients
from kubestow.client.informer import Informer
from kubestow.client.informers import Informers
from kubestow.client.resources import PODS, WATCHED, declared_resource, watched_by_gates
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
    informers = Informers(clients.watches, random.random, metrics)
    kinds = whole_kinds(configuration.extenders)
    watched = [
        replace(resource, kind=kinds.get(resource.kind, resource.kind))
        for resource in (*WATCHED, *watched_by_gates(features))
    ]
    # Pods are last: the objects they refer to are known then, so that no pod is evaluated twice.
    stores = {resource.name: informers.watch(resource, last=resource.name == PODS.name) for resource in watched}
    return Watches(clients, informers, stores)


class DeclaredWatches:
    """The watches of the kinds that plugins declare; they start and end with the plugins."""

    def __init__(self, informers: Informers, forget: Callable[[type], None]) -> None:
        """`forget` drops the objects of a kind that is no longer watched."""
        self._informers = informers
        self._forget = forget
        self._watched: dict[type, Informer[Any]] = {}

    def add(self, kinds: Iterable[type[Any]]) -> None:
        """Watch kinds that are not watched yet; built-in kinds, which the scheduler watches itself, are left out."""
        for kind in kinds:
            resource = declared_resource(kind)
            if resource is not None and kind not in self._watched:
                self._watched[kind] = self._informers.watch(resource)

    async def wait_synced(self) -> None:
        """Wait until every kind is listed, or is known to be unavailable."""
        for informer in tuple(self._watched.values()):
            await informer.synced.wait()

    def keep_only(self, kinds: Iterable[type]) -> None:
        """Stop the watches of other kinds."""
        for kind in self._watched.keys() - set(kinds):
            self._informers.unwatch(self._watched.pop(kind))
            self._forget(kind)
