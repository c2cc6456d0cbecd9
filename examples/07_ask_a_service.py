"""Ask a service before a pod is bound. Other pods are scheduled meanwhile: PreBind runs beside the cycle.

The service is asked by GET with namespace, pod and node; anything but 200 sends the pod back to the queue, to be tried
again later.
"""

import asyncio
from dataclasses import dataclass
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

from kubestow.plugin import unschedulable


@dataclass
class ServiceArgs:
    url: str
    timeout: float = 5.0


class AskService:
    name = "AskService"

    def __init__(self, args: ServiceArgs, handle):
        self.url, self.timeout = args.url, args.timeout

    def pre_bind_needed(self, state, pod, node):
        return "ask-service" in pod.labels

    async def pre_bind(self, state, pod, node):
        # urlopen waits, so it does so in a thread of its own.
        return await asyncio.to_thread(self.ask, pod, node)

    def ask(self, pod, node):
        query = urlencode({"namespace": pod.namespace, "pod": pod.name, "node": node})
        try:
            with urlopen(f"{self.url}?{query}", timeout=self.timeout):
                return None
        except HTTPError as error:
            return unschedulable(f"the service at {self.url} says no: {error.reason}")
