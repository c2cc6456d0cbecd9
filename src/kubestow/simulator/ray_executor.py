"""A Ray cluster as an Executor. Ray retries the tasks of a worker that dies on another one."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import ray

_TRIES_AGAIN = 3


class RayExecutor(Executor):
    """Connected from construction to shutdown; construction raises ConnectionError if the cluster cannot be reached."""

    def __init__(self, address: str) -> None:
        ray.init(address=address, log_to_driver=False, logging_level="error")

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a task, as in any Executor."""
        future: Future[Any] = ray.remote(max_retries=_TRIES_AGAIN)(fn).remote(*args, **kwargs).future()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Disconnect and abandon unfinished tasks."""
        del wait, cancel_futures
        ray.shutdown()
