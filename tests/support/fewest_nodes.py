"""Searches that stop early in small clusters, too."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kubestow.scheduler.cluster import order


@contextmanager
def fewest_nodes(fewest: int) -> Iterator[None]:
    """Stop the search at this number of feasible nodes; afterwards, the previous setting is restored."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "MIN_FEASIBLE_NODES", fewest)
        order.feasible_nodes_to_find.cache_clear()
        try:
            yield
        finally:
            order.feasible_nodes_to_find.cache_clear()
