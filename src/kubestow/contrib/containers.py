"""The resources of the containers of a pod."""

from collections.abc import Hashable, Mapping
from typing import Any

from kubestow.plugin import Pod


def signature_of(pod: Pod) -> Hashable:
    """Return the requests and limits of containers, init containers and the pod itself, as they are written."""
    spec, level = pod.spec, pod.spec.resources
    return (
        tuple([(_items(one.resources.requests), _items(one.resources.limits)) for one in spec.containers]),
        tuple(
            [
                (_items(one.resources.requests), _items(one.resources.limits), one.restartPolicy == "Always")
                for one in spec.initContainers
            ]
        ),
        _items(spec.overhead),
        None if level is None else (_items(level.requests), _items(level.limits)),
    )


def _items(amounts: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(amounts.items())
