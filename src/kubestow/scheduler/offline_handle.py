"""Handles for testing plugins outside of a running scheduler."""

import random
from typing import Any

from kubestow.config.features import Features
from kubestow.scheduler.cluster.state import Cluster
from kubestow.scheduler.framework.detached import detached_handle
from kubestow.scheduler.framework.handle import Handle


def offline_handle(cluster: Cluster, features: Features | None = None, **parts: Any) -> Handle:
    """Return a handle for a cluster, without a scheduler; `parts` replaces any of its attributes."""
    return detached_handle(cluster, features, **{"rng": random.Random(0), **parts})
