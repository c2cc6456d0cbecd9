"""Ask a service before a pod is bound. PreBind runs asynchronously, so that other pods are scheduled in the meantime.

The plugin sends a GET request with namespace, pod and node; a response other than 200 returns the pod to the queue, to
be retried later.
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
        # urlopen blocks, so it runs in a thread.
        return await asyncio.to_thread(self.ask, pod, node)

    def ask(self, pod, node):
        query = urlencode({"namespace": pod.namespace, "pod": pod.name, "node": node})
        try:
            with urlopen(f"{self.url}?{query}", timeout=self.timeout):
                return None
        except HTTPError as error:
            return unschedulable(f"the service at {self.url} rejects the pod: {error.reason}")
