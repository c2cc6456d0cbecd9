"""What stands in the way of a pod, by name: the claim that does not exist, the pods that hold a port, and so on.

A `Cause` names the objects concerned, the nearest existing names for one that does not exist, and the changes that
would remove it. Each module returns the causes of some plugins: `places` (labels, names, taints and resources of
nodes), `neighbours` (other pods), `claims` (volumes) and `devices`; `pod_groups` is about the group of the pod.
Causes are derived from the objects and from which plugins rejected the pod, never from the texts of rejections.
"""

from collections.abc import Iterator
from itertools import chain

from kubestow.insight.explain.causes.cause import Cause, Scene
from kubestow.insight.explain.causes.claims import claim_causes
from kubestow.insight.explain.causes.devices import device_causes
from kubestow.insight.explain.causes.neighbours import neighbour_causes
from kubestow.insight.explain.causes.places import place_causes
from kubestow.insight.explain.causes.pod_groups import group_causes
from kubestow.insight.explain.dry_run import DryRun

__all__ = ["Cause", "causes_of"]


def causes_of(run: DryRun) -> list[Cause]:
    """Return what stands in the way of a pod that fits nowhere: first what does not exist."""
    if run.fits:
        return []
    scene = Scene(run)
    every = (place_causes, claim_causes, device_causes, group_causes, neighbour_causes)
    return list(chain.from_iterable(_known(of(scene)) for of in every))


def _known(causes: Iterator[Cause]) -> Iterator[Cause]:
    """Yield causes up to an object that is too invalid to be described; the plugin reports it."""
    try:
        yield from causes
    except ValueError:
        return
