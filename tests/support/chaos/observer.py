"""Watches the API server and reports violations of the scheduler's guarantees.

It shares no code with the scheduler: it reads pods, nodes and claims with a client of its own, and the server's audit
log for the order of writes. When its watch breaks it lists again; a binding that changed meanwhile is still detected,
because the node of every pod is remembered.
"""

import http.client
import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from support.chaos.planes import SCHEDULERS, Api, Plane
from support.polling import PATIENCE

KINDS = {
    "pods": "/api/v1/pods",
    "nodes": "/api/v1/nodes",
    "claims": "/apis/resource.k8s.io/v1/resourceclaims",
    "volumes": "/api/v1/persistentvolumes",
}
_LIST_AGAIN = 20.0


@dataclass
class Observed:
    """The violations found, as text."""

    double: list[str] = field(default_factory=list)
    """A pod bound twice or to two nodes; a device or a volume allocated twice."""
    overcommitted: list[str] = field(default_factory=list)
    fencing: list[str] = field(default_factory=list)
    """Writes of a deposed leader."""


class Observer:
    """Watches from `start` to `stop`."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._api = Api(plane)
        self._objects: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in KINDS}
        self._node_of: dict[str, str] = {}
        """The first node of each pod, by UID."""
        self._claim_of: dict[str, str] = {}
        """The first claim of each volume, by UID."""
        self._pods_on: dict[str, set[str]] = defaultdict(set)
        self._largest_capacity: dict[str, dict[str, int]] = {}
        self.violations = Observed()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._follow, args=(kind,), daemon=True) for kind in KINDS]

    def start(self) -> "Observer":
        for thread in self._threads:
            thread.start()
        return self

    def stop(self) -> Observed:
        """Check all objects and the audit log once more, and return the violations."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(PATIENCE)
        for kind in KINDS:
            self._list(kind)
        self._api.close()
        self.violations.fencing += deposed_writes(self._plane.audit_log)
        return self.violations

    @property
    def bound(self) -> int:
        """The number of pods that were ever bound."""
        return len(self._node_of)

    # Watching

    def _follow(self, kind: str) -> None:
        while not self._stopped.is_set():
            try:
                self._watch(kind, self._list(kind))
            except (OSError, http.client.HTTPException, ValueError):
                self._stopped.wait(0.1)

    def _list(self, kind: str) -> str:
        status, answer = self._api.retry("GET", KINDS[kind])
        if status != 200:
            raise ValueError(answer)
        with self._lock:
            self._objects[kind] = {}
            for item in answer["items"]:
                self._store(kind, item)
        version: str = answer["metadata"]["resourceVersion"]
        return version

    def _watch(self, kind: str, version: str) -> None:
        connection = self._api.connect(timeout=_LIST_AGAIN)
        try:
            connection.request("GET", f"{KINDS[kind]}?watch=1&resourceVersion={version}", headers=self._api.headers())
            with connection.getresponse() as response:
                if response.status != 200:
                    raise ValueError(response.read())
                while not self._stopped.is_set() and (line := response.readline()):
                    event = json.loads(line)
                    if event["type"] == "ERROR":
                        return
                    with self._lock:
                        if event["type"] == "DELETED":
                            self._objects[kind].pop(_uid(event["object"]), None)
                        elif event["type"] != "BOOKMARK":
                            self._store(kind, event["object"])
        finally:
            connection.close()

    # Checks

    def _store(self, kind: str, obj: dict[str, Any]) -> None:
        self._objects[kind][_uid(obj)] = obj
        if kind == "pods":
            self._check_pod(obj)
        elif kind == "nodes":
            capacity = self._largest_capacity.setdefault(obj["metadata"]["name"], {})
            for name, value in _capacity(obj).items():
                capacity[name] = max(capacity.get(name, 0), value)
        elif kind == "volumes":
            self._check_volume(obj)
        else:
            self._check_devices()

    def _check_pod(self, pod: dict[str, Any]) -> None:
        uid, node = _uid(pod), pod["spec"].get("nodeName", "")
        before = self._node_of.get(uid)
        if before is None:
            if node:
                self._node_of[uid] = node
                self._pods_on[node].add(uid)
                self._check_node(node)
        elif before != node:
            self.violations.double.append(f"{pod['metadata']['name']} was on {before} and is on {node or 'none'}")

    def _check_node(self, node: str) -> None:
        """Check that requests do not exceed the largest capacity that the node ever had."""
        capacity = self._largest_capacity.get(node)
        if capacity is None:
            return
        used: Counter[str] = Counter()
        for uid in self._pods_on[node]:
            pod = self._objects["pods"].get(uid)
            if pod is not None and pod["status"].get("phase") not in ("Succeeded", "Failed"):
                used.update(_requests(pod))
        for name, value in used.items():
            if value > capacity.get(name, value):
                self.violations.overcommitted.append(f"{node} has {capacity[name]} {name}, and gave {value}")

    def _check_devices(self) -> None:
        holders: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        for claim in self._objects["claims"].values():
            results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
            for result in results:
                if not result.get("shareID") and not result.get("adminAccess"):
                    device = (result["driver"], result["pool"], result["device"])
                    holders[device].append(claim["metadata"]["name"])
        self.violations.double += [f"{'/'.join(d)} held by {names}" for d, names in holders.items() if len(names) > 1]

    def _check_volume(self, volume: dict[str, Any]) -> None:
        """Check that a claim keeps its volume, and that no other claim has the same one."""
        claim = volume["spec"].get("claimRef")
        if claim is not None:
            first = self._claim_of.setdefault(_uid(volume), claim["name"])
            if first != claim["name"]:
                self.violations.double.append(f"{volume['metadata']['name']} was {first}'s and is {claim['name']}'s")

    # Final state

    def waiting(self) -> dict[str, dict[str, Any]]:
        """Return the pods without a node, by name."""
        with self._lock:
            pods = list(self._objects["pods"].values())
        return {pod["metadata"]["name"]: pod for pod in pods if not pod["spec"].get("nodeName")}


def reason_for_waiting(pod: dict[str, Any]) -> str:
    """Return the message of the pod's condition, "" if it has none."""
    for condition in pod["status"].get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"{condition.get('reason', '')}: {condition.get('message', '')}"
    return ""


def deposed_writes(audit_log: Path) -> list[str]:
    """Return writes of schedulers that were not the last to write the lease, which makes a leader."""
    leader, violations = "", []
    for user, kind, uri in _writes(audit_log.read_bytes() if audit_log.exists() else b""):
        if kind == "leases":
            leader = user
        elif kind not in ("events", "tokenreviews", "subjectaccessreviews") and leader not in ("", user):
            violations.append(f"{user} wrote {uri} after {leader} had taken the lease")
    return violations


def last_lease_writer(audit_log: Path) -> str:
    """Return the last user that wrote the lease, according to the end of the log."""
    with audit_log.open("rb") as file:
        file.seek(max(0, audit_log.stat().st_size - 500_000))
        return next((user for user, kind, _ in reversed(list(_writes(file.read()))) if kind == "leases"), "")


def _writes(log: bytes) -> Iterator[tuple[str, str, str]]:
    """Yield user, kind and path of the successful writes of schedulers."""
    for line in log.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            # Truncated when the server was killed, or at the position where reading began.
            continue
        user = event.get("user", {}).get("username", "")
        if event["responseStatus"].get("code", 0) < 300 and event["verb"] in _WRITES and user in SCHEDULERS:
            yield user, event.get("objectRef", {}).get("resource", ""), event["requestURI"]


_WRITES = frozenset(("create", "update", "patch", "delete"))


def _uid(obj: dict[str, Any]) -> str:
    uid: str = obj["metadata"]["uid"]
    return uid


def _capacity(node: dict[str, Any]) -> dict[str, int]:
    capacity = node["status"].get("allocatable", {})
    return {"cpu": _milli(capacity.get("cpu", "0")), "pods": int(capacity.get("pods", "0"))}


def _requests(pod: dict[str, Any]) -> dict[str, int]:
    containers = pod["spec"]["containers"]
    asked = (container.get("resources", {}).get("requests", {}).get("cpu", "0") for container in containers)
    return {"cpu": sum(map(_milli, asked)), "pods": 1}


def _milli(text: str) -> int:
    """Parse whole and milli CPUs, the only amounts that the suite's own objects use."""
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000
