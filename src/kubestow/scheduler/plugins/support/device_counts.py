"""How much of an extended resource nodes have where devices stand for it, so that they can be scored by it.

Every device that the class selects counts. Whether its pool is complete, so that it could be allocated, does not matter
here, as in kube-scheduler.
"""

import numpy as np

from kubestow.api.devices import DeviceClass
from kubestow.config.features import Features
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.devices import Devices
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.plugins.support.device_selectors import Expressions, SelectorError
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)


class DeviceCounts:
    """Counts the devices behind extended resources."""

    def __init__(self, devices: Devices, features: Features) -> None:
        self._devices = devices
        self._expressions = Expressions(features)
        self._epoch = devices.epoch

    def stand_for(self, resource: str) -> bool:
        """Whether devices stand for a resource, where nodes do not offer it."""
        return resource in self._devices.classes

    def are_wanted_by(self, pod: PodInfo) -> bool:
        """Whether a pod asks for a resource that devices stand for."""
        classes = self._devices.classes
        return bool(classes) and not classes.keys().isdisjoint(pod.requests.amounts)

    def of(self, resource: str, rows: IntArray) -> tuple[IntArray, IntArray]:
        """How many devices the nodes of the cluster's rows have, and how many of them claims hold."""
        if self._epoch != self._devices.epoch:
            self._epoch = self._devices.epoch
            self._expressions.forget()
        device_class = self._devices.classes[resource]
        counts = [self._on(row, device_class) for row in rows.tolist()]
        found: IntArray = np.array(counts, np.int64).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    def _on(self, row: int, device_class: DeviceClass) -> tuple[int, int]:
        expressions = [self._expressions.of(selector) for selector in device_class.spec.selectors if selector.cel]
        total = held = 0
        try:
            for device, usage in self._devices.usable_on(row):
                if all(expression.matches(device) for expression in expressions):
                    total += 1
                    held += usage.holds(device.name)
        except SelectorError as error:
            node, name = self._devices.node_name(row), device_class.metadata.name
            words = "Failed to calculate DRA resource capacity and allocated"
            log.error(words, err=error, node=node, deviceClass=name)
            return 0, 0
        return total, held
