"""Hold pods until the office opens: pods with the label `when: office-hours` start between 9:00 and 17:00 UTC."""

import asyncio
from dataclasses import dataclass

from kubestow.plugin import unschedulable

HOUR = 3600
DAY = 24 * HOUR


@dataclass
class OfficeArgs:
    opens: int = 9
    closes: int = 17


class OfficeHours:
    name = "OfficeHours"

    def __init__(self, args: OfficeArgs, handle):
        self.opens, self.closes = args.opens * HOUR, args.closes * HOUR
        self.now = handle.clock.now
        self.activate = handle.activate

    def requeue_on(self):
        # No event in the cluster makes the pod schedulable: only the time does.
        return []

    def pre_enqueue(self, pod):
        if pod.metadata.labels.get("when") != "office-hours":
            return None
        time_of_day = self.now() % DAY
        if self.opens <= time_of_day < self.closes:
            return None
        opens_in = (self.opens - time_of_day) % DAY
        asyncio.get_running_loop().call_later(opens_in, self.activate, [pod])
        return unschedulable(f"the office opens in {opens_in / HOUR:.1f} hours")
