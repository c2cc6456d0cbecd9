"""Tasks of a Ray cluster as an Executor. A worker that dies gives its tasks back; Ray tries them again elsewhere."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import ray

_TRIES_AGAIN = 3


class RayExecutor(Executor):
    """Is connected until it is shut down; raises ConnectionError if there is nobody."""

    def __init__(self, address: str) -> None:
        ray.init(address=address, log_to_driver=False, logging_level="error")

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """As in any Executor."""
        future: Future[Any] = ray.remote(max_retries=_TRIES_AGAIN)(fn).remote(*args, **kwargs).future()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Disconnect; what is not done yet is given up."""
        del wait, cancel_futures
        ray.shutdown()
