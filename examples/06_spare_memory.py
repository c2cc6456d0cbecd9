"""Keep some memory of every node free, in plain and vector form.

`filter` is the rule for one node. `filter_rows` is the same rule for many nodes at once; the scheduler calls it if a
plugin has both. `kubestow plugin check` verifies that they agree, and measures how much faster the vector form is.
"""

from dataclasses import dataclass

import numpy as np

from kubestow.plugin import unschedulable
from kubestow.plugin.fast import PodsRead, Rejections

REASON = "node would have too little spare memory"


@dataclass
class SpareArgs:
    percent: int = 10


class SpareMemory:
    name = "SpareMemory"
    reads_pods = PodsRead.SUMS

    def __init__(self, args: SpareArgs, handle):
        self.usable = 100 - args.percent

    def sign(self, pod):
        # The result depends only on the requested memory.
        return pod.requests.amounts.get("memory", 0)

    def pre_filter(self, pod):
        return pod.requests.amounts.get("memory", 0)

    def filter(self, state, pod, node):
        used = node.requested("memory") + state
        return REASON if used * 100 > node.allocatable("memory") * self.usable else None

    def filter_rows(self, state, pod, view, rows):
        memory = view.resource_index["memory"]
        used = view.requested[memory][rows] + state
        too_full = used * 100 > view.allocatable[memory][rows] * self.usable
        return Rejections(too_full.astype(np.int64), lambda _: unschedulable(REASON))
