"""The time of day."""

import time


class WallClock:
    """As the system tells it."""

    def now(self) -> float:
        return time.time()
