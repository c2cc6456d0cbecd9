"""Devices: what slices offer, what claims have allocated, and a summary of both for each row.

`entries` parses slices, `pools` combines the slices of a pool as a node can use them, `usage` counts allocations.
`state` is updated by each event and summarizes everything that an allocation on a row can depend on in one number.
`classes` maps extended resources to device classes.

Promise: updated event by event, claims being written included; a cycle never iterates over all claims or slices.
"""

from kubestow.scheduler.cluster.devices.entries import DeviceEntry
from kubestow.scheduler.cluster.devices.pools import PoolView
from kubestow.scheduler.cluster.devices.state import Devices

__all__ = ["DeviceEntry", "Devices", "PoolView"]
