"""Somebody who only watches the API server, and says what must never have happened.

It shares no code with the scheduler: it reads pods, nodes and claims with a client of its own, and the server's audit
log for who wrote what in which order. When its watch breaks it lists again; a binding that changed meanwhile is still
seen, because it remembers where every pod was.
"""

import http.client
import json
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.planes import SCHEDULERS, Api, Plane
from integration.real_control_plane import PATIENCE

KINDS = {
    "pods": "/api/v1/pods",
    "nodes": "/api/v1/nodes",
    "claims": "/apis/resource.k8s.io/v1/resourceclaims",
    "volumes": "/api/v1/persistentvolumes",
}
_LIST_AGAIN = 20.0


@dataclass
class Observed:
    """What is wrong, each in words."""

    double: list[str] = field(default_factory=list)
    """Bound twice or to two nodes; a device or a volume given out twice."""
    overcommitted: list[str] = field(default_factory=list)
    fencing: list[str] = field(default_factory=list)
    """Writes of a leader that had been deposed."""


class Observer:
    """Watches from `start` to `stop`."""

    def __init__(self, plane: Plane) -> None:
        self._plane = plane
        self._api = Api(plane)
        self._objects: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in KINDS}
        self._node_of: dict[str, str] = {}
        """By the pod's uid, where it was first seen bound."""
        self._claim_of: dict[str, str] = {}
        """By the volume's uid, the claim it was first given to."""
        self._pods_on: dict[str, set[str]] = defaultdict(set)
        self._most_room: dict[str, dict[str, int]] = {}
        self.wrong = Observed()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._follow, args=(kind,), daemon=True) for kind in KINDS]

    def start(self) -> "Observer":
        for thread in self._threads:
            thread.start()
        return self

    def stop(self) -> Observed:
        """Looks once more at everything, and at the audit log."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(PATIENCE)
        for kind in KINDS:
            self._list(kind)
        self._api.close()
        self.wrong.fencing += deposed_writes(self._plane.audit_log)
        return self.wrong

    @property
    def bound(self) -> int:
        """How many pods it has ever seen bound."""
        return len(self._node_of)

    # Watching

    def _follow(self, kind: str) -> None:
        while not self._stopped.is_set():
            try:
                self._watch(kind, self._list(kind))
            except (OSError, http.client.HTTPException, ValueError):
                self._stopped.wait(0.1)

    def _list(self, kind: str) -> str:
        status, answer = self._api.insist("GET", KINDS[kind])
        if status != 200:
            raise ValueError(answer)
        with self._lock:
            self._objects[kind] = {}
            for item in answer["items"]:
                self._take(kind, item)
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
                            self._take(kind, event["object"])
        finally:
            connection.close()

    # Judging

    def _take(self, kind: str, obj: dict[str, Any]) -> None:
        self._objects[kind][_uid(obj)] = obj
        if kind == "pods":
            self._judge_pod(obj)
        elif kind == "nodes":
            room = self._most_room.setdefault(obj["metadata"]["name"], {})
            for name, value in _room(obj).items():
                room[name] = max(room.get(name, 0), value)
        elif kind == "volumes":
            self._judge_volume(obj)
        else:
            self._judge_devices()

    def _judge_pod(self, pod: dict[str, Any]) -> None:
        uid, node = _uid(pod), pod["spec"].get("nodeName", "")
        before = self._node_of.get(uid)
        if before is None:
            if node:
                self._node_of[uid] = node
                self._pods_on[node].add(uid)
                self._judge_node(node)
        elif before != node:
            self.wrong.double.append(f"{pod['metadata']['name']} was on {before} and is on {node or 'none'}")

    def _judge_node(self, node: str) -> None:
        """Nobody may give out more than the node ever had."""
        room = self._most_room.get(node)
        if room is None:
            return
        used: Counter[str] = Counter()
        for uid in self._pods_on[node]:
            pod = self._objects["pods"].get(uid)
            if pod is not None and pod["status"].get("phase") not in ("Succeeded", "Failed"):
                used.update(_requests(pod))
        for name, value in used.items():
            if value > room.get(name, value):
                self.wrong.overcommitted.append(f"{node} has {room[name]} {name}, and gave {value}")

    def _judge_devices(self) -> None:
        holders: dict[tuple[str, str, str], list[str]] = defaultdict(list)
        for claim in self._objects["claims"].values():
            results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
            for result in results:
                if not result.get("shareID") and not result.get("adminAccess"):
                    device = (result["driver"], result["pool"], result["device"])
                    holders[device].append(claim["metadata"]["name"])
        self.wrong.double += [f"{'/'.join(d)} belongs to {names}" for d, names in holders.items() if len(names) > 1]

    def _judge_volume(self, volume: dict[str, Any]) -> None:
        """A claim that has a volume keeps it, and no other has the same."""
        claim = volume["spec"].get("claimRef")
        if claim is not None:
            first = self._claim_of.setdefault(_uid(volume), claim["name"])
            if first != claim["name"]:
                self.wrong.double.append(f"{volume['metadata']['name']} was {first}'s and is {claim['name']}'s")

    # What is there in the end

    def waiting(self) -> dict[str, dict[str, Any]]:
        """Pods without a node, by name."""
        with self._lock:
            pods = list(self._objects["pods"].values())
        return {pod["metadata"]["name"]: pod for pod in pods if not pod["spec"].get("nodeName")}


def reason_for_waiting(pod: dict[str, Any]) -> str:
    """What the pod's condition says, empty if it says nothing."""
    for condition in pod["status"].get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return f"{condition.get('reason', '')}: {condition.get('message', '')}"
    return ""


def deposed_writes(audit_log: Path) -> list[str]:
    """Writes by one whose lease somebody else had taken: the last to write the lease is the leader."""
    leader, wrong = "", []
    for user, kind, uri in _writes(audit_log.read_bytes() if audit_log.exists() else b""):
        if kind == "leases":
            leader = user
        elif kind not in ("events", "tokenreviews", "subjectaccessreviews") and leader not in ("", user):
            wrong.append(f"{user} wrote {uri} after {leader} had taken the lease")
    return wrong


def last_lease_writer(audit_log: Path) -> str:
    """As far as the end of the log tells."""
    with audit_log.open("rb") as file:
        file.seek(max(0, audit_log.stat().st_size - 500_000))
        return next((user for user, kind, _ in reversed(list(_writes(file.read()))) if kind == "leases"), "")


def _writes(log: bytes) -> Iterator[tuple[str, str, str]]:
    """Successful writes of schedulers: who, what kind, which address."""
    for line in log.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            # Cut off when the server was killed, or where the reading began.
            continue
        user = event.get("user", {}).get("username", "")
        if event["responseStatus"].get("code", 0) < 300 and event["verb"] in _WRITES and user in SCHEDULERS:
            yield user, event.get("objectRef", {}).get("resource", ""), event["requestURI"]


_WRITES = frozenset(("create", "update", "patch", "delete"))


def _uid(obj: dict[str, Any]) -> str:
    uid: str = obj["metadata"]["uid"]
    return uid


def _room(node: dict[str, Any]) -> dict[str, int]:
    room = node["status"].get("allocatable", {})
    return {"cpu": _milli(room.get("cpu", "0")), "pods": int(room.get("pods", "0"))}


def _requests(pod: dict[str, Any]) -> dict[str, int]:
    containers = pod["spec"]["containers"]
    asked = (container.get("resources", {}).get("requests", {}).get("cpu", "0") for container in containers)
    return {"cpu": sum(map(_milli, asked)), "pods": 1}


def _milli(text: str) -> int:
    """The suite's own objects use whole and milli CPUs only."""
    return int(text[:-1]) if text.endswith("m") else int(text) * 1000
