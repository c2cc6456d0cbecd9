"""The device class of each extended resource."""

from collections.abc import Iterable

from kubestow.api.devices import DeviceClass
from kubestow.api.timestamps import parse_time

CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
"""Followed by the name of a class: the extended resource that every class has."""


def classes_by_resource(classes: Iterable[DeviceClass]) -> dict[str, DeviceClass]:
    """Return the class of each extended resource; of several the newest, and of equally new ones the first by name."""
    found: dict[str, DeviceClass] = {}
    for device_class in sorted(classes, key=_precedence, reverse=True):
        found[CLASS_PREFIX + device_class.metadata.name] = device_class
        if device_class.spec.extendedResourceName:
            found[device_class.spec.extendedResourceName] = device_class
    return found


def _precedence(device_class: DeviceClass) -> tuple[float, str]:
    created = device_class.metadata.creationTimestamp
    return -parse_time(created) if created else 0.0, device_class.metadata.name
