"""The number of devices behind an extended resource on each node, for scoring.

Every device that the class selects counts, as in kube-scheduler: even if its pool is incomplete, so that it cannot be
allocated.
"""

import numpy as np

from kubestow.api.devices import DeviceClass
from kubestow.scheduler.cluster.arrays import IntArray
from kubestow.scheduler.cluster.devices import Devices
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.plugins.support.device_selectors import Expressions, SelectorError
from kubestow.telemetry.logs import get_logger

log = get_logger(__name__)


class DeviceCounts:
    """Counts the devices that back extended resources."""

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self._expressions = Expressions()
        self._epoch = devices.epoch

    def back_resource(self, resource: str) -> bool:
        """Return whether devices back a resource on nodes without an own amount of it."""
        return resource in self._devices.classes

    def are_requested_by(self, pod: PodInfo) -> bool:
        """Return whether a pod requests a device-backed resource."""
        classes = self._devices.classes
        return bool(classes) and not classes.keys().isdisjoint(pod.requests.amounts)

    def counts(self, resource: str, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return the number of devices on each row of the cluster, and the number of them that are allocated."""
        if self._epoch != self._devices.epoch:
            self._epoch = self._devices.epoch
            self._expressions.clear()
        device_class = self._devices.classes[resource]
        counts = [self._count_on(row, device_class) for row in rows.tolist()]
        found: IntArray = np.array(counts, np.int64).reshape(-1, 2)
        return found[:, 0], found[:, 1]

    def _count_on(self, row: int, device_class: DeviceClass) -> tuple[int, int]:
        expressions = [self._expressions.of(selector) for selector in device_class.spec.selectors if selector.cel]
        total = held = 0
        try:
            for device, usage in self._devices.usable_devices(row):
                if all(expression.matches(device) for expression in expressions):
                    total += 1
                    held += usage.holds(device.name)
        except SelectorError as error:
            node, name = self._devices.node_name(row), device_class.metadata.name
            message = "Failed to calculate DRA resource capacity and allocated"
            log.error(message, err=error, node=node, deviceClass=name)
            return 0, 0
        return total, held
