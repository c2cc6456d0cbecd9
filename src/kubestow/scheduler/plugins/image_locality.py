"""ImageLocality: prefers nodes that have the pod's images, weighted by image size and the share of nodes with it."""

from collections.abc import Hashable
from typing import Any

import numpy as np

from kubestow.api.images import normalized_image_name
from kubestow.scheduler.cluster.arrays import IntArray, Rows, row_count
from kubestow.scheduler.cluster.pods import PodInfo
from kubestow.scheduler.cluster.view import NodeView
from kubestow.scheduler.framework.handle import Handle
from kubestow.scheduler.framework.plugin import PodsRead
from kubestow.scheduler.framework.results import MAX_SCORE

_MEGABYTE = 1024 * 1024
_MIN_SIZE = 23 * _MEGABYTE
_MAX_SIZE_PER_IMAGE = 1000 * _MEGABYTE


class ImageLocality:
    """Prefers nodes that have the pod's images."""

    name = "ImageLocality"
    reads_pods = PodsRead.NOTHING

    def __init__(self, args: Any, handle: Handle) -> None:
        self._cluster = handle.cluster

    def sign(self, pod: PodInfo) -> Hashable:
        names = tuple(_image_names(pod))
        known = self._cluster.images.by_name
        if known.keys().isdisjoint(names):
            return names
        found = [known.get(name) for name in names]
        # A node's score also depends on the number of nodes that have the image.
        spread = tuple([image and (image.size, len(image.rows)) for image in found])
        return names, spread, self._cluster.nodes.count

    def score_rows(self, state: None, pod: PodInfo, view: NodeView, rows: Rows) -> IntArray:
        sums: IntArray | None = None
        node_count = self._cluster.nodes.count
        names = _image_names(pod)
        for name in names:
            image = self._cluster.images.by_name.get(name)
            if image is not None:
                if sums is None:
                    sums = np.zeros(self._cluster.nodes.size, np.int64)
                sums[list(image.rows)] += int(image.size * (len(image.rows) / node_count))
        if sums is None:
            return np.zeros(row_count(rows), np.int64)
        max_size = _MAX_SIZE_PER_IMAGE * len(names)
        held = np.clip(sums[view.source_rows()[rows]], _MIN_SIZE, max_size)
        return MAX_SCORE * (held - _MIN_SIZE) // (max_size - _MIN_SIZE)


def _image_names(pod: PodInfo) -> list[str]:
    """Return the names of the images of all containers and image volumes, with repetitions."""
    spec = pod.pod.spec
    names = [normalized_image_name(container.image) for container in (*spec.initContainers, *spec.containers)]
    if spec.volumes:
        names += [normalized_image_name(of.image.reference) for of in spec.volumes if of.image is not None]
    return names
