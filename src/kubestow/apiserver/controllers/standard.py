"""The controllers a control plane runs."""

from kubestow.apiserver.controllers.budgets import Budgets
from kubestow.apiserver.controllers.claims import DeviceClaims
from kubestow.apiserver.controllers.deployments import Deployments
from kubestow.apiserver.controllers.events import Events
from kubestow.apiserver.controllers.garbage import GarbageCollector
from kubestow.apiserver.controllers.jobs import Jobs
from kubestow.apiserver.controllers.namespaces import Namespaces
from kubestow.apiserver.controllers.nodes import Nodes
from kubestow.apiserver.controllers.pods import Pods
from kubestow.apiserver.controllers.queue import Controllers
from kubestow.apiserver.controllers.replicasets import ReplicaSets
from kubestow.apiserver.controllers.volumes import Volumes
from kubestow.apiserver.objects.removal import Remover
from kubestow.apiserver.objects.writing import Writer


def start(writer: Writer, remover: Remover) -> Controllers:
    """Starts them all."""
    store = writer.store
    pods = Pods(store, writer, remover)
    return Controllers(
        store,
        (
            Namespaces(store, writer, remover),
            GarbageCollector(store, writer, remover),
            ReplicaSets(pods, writer),
            ReplicaSets(pods, writer, "replicationcontrollers"),
            Deployments(store, writer, remover),
            Jobs(pods, writer, remover),
            Budgets(pods, writer),
            Nodes(store, writer, remover),
            Volumes(store, writer, remover),
            DeviceClaims(store, writer),
            Events(store),
        ),
    )
