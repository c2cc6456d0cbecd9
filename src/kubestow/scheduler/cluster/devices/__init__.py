"""Devices: what slices offer, what claims hold of it, and what that comes to on each row.

`entries` reads slices, `pools` puts the slices of a pool together as a node sees them, `usage` counts what is taken.
`state` follows events and sums up, for every row, all that an allocation there could depend on in one number.
`classes` knows which extended resources stand for devices.

Promise: kept event by event, claims under way included; a cycle never walks all claims or all slices.
"""

from kubestow.scheduler.cluster.devices.entries import DeviceEntry
from kubestow.scheduler.cluster.devices.pools import PoolView
from kubestow.scheduler.cluster.devices.state import Devices

__all__ = ["DeviceEntry", "Devices", "PoolView"]
