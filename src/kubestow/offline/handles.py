"""Stand-ins for trying plugins and cycles outside a running scheduler."""

import random
from typing import Any, overload

from kubestow.cluster.state import Cluster
from kubestow.config.features import Features
from kubestow.cycle.outcome import Outcome
from kubestow.extenders.extender import Asking
from kubestow.framework.detached import ListRecorder, NoApi, NoNominations, NoWaitingPods, StillClock, detached_handle
from kubestow.framework.handle import Handle
from kubestow.framework.results import PostFilterResult

__all__ = ["ListRecorder", "NoApi", "NoNominations", "NoWaitingPods", "StillClock", "offline_handle", "settled"]


def offline_handle(cluster: Cluster, features: Features | None = None, **parts: Any) -> Handle:
    """Return a handle on a cluster, with nothing behind it; `parts` replaces any of its attributes."""
    return detached_handle(cluster, features, **{"rng": random.Random(0), **parts})


@overload
def settled(result: Outcome | Asking[Outcome]) -> Outcome: ...


@overload
def settled(result: PostFilterResult | Asking[PostFilterResult]) -> PostFilterResult: ...


def settled(result: Any) -> Any:
    """Return the result of a cycle, or a part of it, that had no extenders to ask."""
    assert not isinstance(result, Asking)
    return result
