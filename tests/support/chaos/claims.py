"""Story: pods that each need a device or a volume, with exactly as many of those as pods."""

import threading
import time
from pathlib import Path
from typing import Any

from support.chaos.planes import Api, Plane
from support.chaos.world import Planes, Row, World, running_world
from support.integration.device_manifests import CLAIMS, CLASSES, SLICES, claim, device_class, device_slice
from support.polling import PATIENCE

STORAGE_CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
VOLUMES = "/api/v1/persistentvolumes"
VOLUME_CLAIMS = "/api/v1/namespaces/default/persistentvolumeclaims"
_NODES = 10
_BATCH = 10
_MERGE = "application/merge-patch+json"


def devices_and_volumes(row: Row, folder: Path, planes: Planes, count: int) -> None:
    """The network fails during allocation, and the scheduler is killed; each device and volume goes to one pod."""
    with running_world(row, folder, planes) as world:
        world.add_nodes(_NODES)
        world.create(CLASSES, device_class())
        world.create(STORAGE_CLASSES, _storage_class())
        batches = -(-count // _BATCH)
        for number in range(_NODES):
            world.create(SLICES, device_slice(f"n{number}", batches))
        proxy = world.proxy("s1")
        with _VolumeController(world.plane):
            for batch in range(batches):
                for number in range(_BATCH):
                    _add_pods(world, f"{batch}-{number}", f"n{number}")
                proxy.likelihood = world.rng.choice((0.05, 0.2))
                scheduler = world.schedule()
                time.sleep(world.rng.uniform(0.5, 3.0))
                proxy.cut_all()
                scheduler.kill()
                row.faults["scheduler killed"] += 1
            proxy.likelihood = 0.0
            world.schedule()
            world.settle()


def _add_pods(world: World, name: str, node: str) -> None:
    """Add a pod with a device, and a pod with a volume of a node."""
    world.create(CLAIMS, claim(f"d{name}"))
    world.add_pod(f"d{name}", resourceClaims=[{"name": "gpu", "resourceClaimName": f"d{name}"}])
    world.create(VOLUMES, _volume(f"v{name}", node))
    world.api.call("PATCH", f"{VOLUMES}/v{name}/status", {"status": {"phase": "Available"}}, _MERGE)
    world.create(VOLUME_CLAIMS, _volume_claim(f"v{name}"))
    world.add_pod(f"v{name}", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": f"v{name}"}}])


class _VolumeController(threading.Thread):
    """Binds each claim to the volume that the scheduler reserved for it."""

    def __init__(self, plane: Plane) -> None:
        super().__init__(daemon=True)
        self._api = Api(plane)
        self._stopped = threading.Event()
        self._bound: set[str] = set()

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self.join(PATIENCE)
        self._api.close()

    def run(self) -> None:
        while not self._stopped.wait(0.2):
            _, answer = self._api.retry("GET", VOLUMES)
            for volume in answer["items"]:
                name, reference = volume["metadata"]["name"], volume["spec"].get("claimRef")
                if reference is not None and name not in self._bound:
                    completed = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
                    body = {"metadata": completed, "spec": {"volumeName": name}}
                    status, _ = self._api.call("PATCH", f"{VOLUME_CLAIMS}/{reference['name']}", body, _MERGE)
                    if status == 200:
                        self._bound.add(name)


def _storage_class() -> dict[str, Any]:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    }


def _volume(name: str, node: str) -> dict[str, Any]:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOncePod"],
        "storageClassName": "local",
        "local": {"path": "/mnt"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def _volume_claim(name: str) -> dict[str, Any]:
    spec = {
        "accessModes": ["ReadWriteOncePod"],
        "storageClassName": "local",
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}
