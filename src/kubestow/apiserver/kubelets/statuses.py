"""What stand-in kubelets write into the status of nodes and pods."""

import ipaddress
from typing import Any

from kubestow.apiserver import clock
from kubestow.apiserver.rules.pods import set_condition

Object = dict[str, Any]
_PODS_FROM = int(ipaddress.IPv4Address("10.0.0.1"))
_NODES_FROM = int(ipaddress.IPv4Address("172.16.0.1"))
_EXIT_CODE = "kubestow.dev/exit-code"
_DEFAULT_ROOM = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}
_HEALTHY = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


class Addresses:
    """Gives out addresses to nodes and pods, and takes them back."""

    def __init__(self) -> None:
        self._nodes: dict[str, str] = {}
        self._pods: dict[str, str] = {}
        self._free: list[str] = []

    def of_node(self, name: str) -> str:
        """The address of a node."""
        if name not in self._nodes:
            self._nodes[name] = str(ipaddress.IPv4Address(_NODES_FROM + len(self._nodes)))
        return self._nodes[name]

    def of_pod(self, uid: str) -> str:
        """The address of a pod."""
        if uid not in self._pods:
            fresh = str(ipaddress.IPv4Address(_PODS_FROM + len(self._pods)))
            self._pods[uid] = self._free.pop() if self._free else fresh
        return self._pods[uid]

    def release(self, uid: str) -> None:
        """A pod is gone."""
        address = self._pods.pop(uid, None)
        if address is not None:
            self._free.append(address)

    def forget(self, name: str) -> None:
        """A node is gone."""
        self._nodes.pop(name, None)


def report_node(node: Object, address: str, *, ready: bool) -> None:
    """Sets conditions, and fills in what a manifest left out."""
    status = node.setdefault("status", {})
    status.setdefault("capacity", dict(status.get("allocatable", _DEFAULT_ROOM)))
    status.setdefault("allocatable", dict(status["capacity"]))
    name = node["metadata"]["name"]
    status.setdefault("addresses", [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}])
    status.setdefault(
        "nodeInfo",
        {
            "architecture": "amd64",
            "bootID": "",
            "containerRuntimeVersion": "stand-in",
            "kernelVersion": "stand-in",
            "kubeProxyVersion": "",
            "kubeletVersion": "v1.36.4-stand-in",
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": "stand-in",
            "systemUUID": "",
        },
    )
    status.setdefault("daemonEndpoints", {"kubeletEndpoint": {"Port": 10250}})
    conditions: list[Object] = status.setdefault("conditions", [])
    present = {one["type"] for one in conditions}
    for type_, reason, message in _HEALTHY:
        if type_ not in present:
            _set(conditions, type_, "False", reason, message)
    if ready:
        _set(conditions, "Ready", "True", "KubeletReady", "kubelet is posting ready status")
    else:
        _set(conditions, "Ready", "False", "KubeletNotReady", "made not ready by its annotation")


def _set(conditions: list[Object], type_: str, status: str, reason: str, message: str) -> None:
    now = clock.now()
    new: Object = {
        "type": type_,
        "status": status,
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
        "reason": reason,
        "message": message,
    }
    for index, old in enumerate(conditions):
        if old["type"] == type_:
            if old.get("status") == status:
                new["lastTransitionTime"] = old.get("lastTransitionTime", now)
            conditions[index] = new
            return
    conditions.append(new)


def running(pod: Object, node: str, addresses: Addresses) -> None:
    """All containers run and are ready."""
    now = clock.now()
    host = addresses.of_node(node)
    address = host if pod["spec"].get("hostNetwork") else addresses.of_pod(pod["metadata"]["uid"])
    status = pod.setdefault("status", {})
    status |= {
        "phase": "Running",
        "hostIP": host,
        "hostIPs": [{"ip": host}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": now,
        "observedGeneration": pod["metadata"].get("generation", 1),
    }
    status["containerStatuses"] = [
        _container(one, pod, {"running": {"startedAt": now}}, ready=True) for one in pod["spec"]["containers"]
    ]
    if pod["spec"].get("initContainers"):
        done = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": now, "finishedAt": now}}
        status["initContainerStatuses"] = [
            _container(one, pod, {"running": {"startedAt": now}} if _is_sidecar(one) else done, ready=True)
            for one in pod["spec"]["initContainers"]
        ]
    for type_ in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"):
        set_condition(pod, type_, "True")


def _is_sidecar(container: Object) -> bool:
    return bool(container.get("restartPolicy") == "Always")


def _container(container: Object, pod: Object, state: Object, *, ready: bool) -> Object:
    name = container["name"]
    return {
        "name": name,
        "image": container.get("image", ""),
        "imageID": "",
        "containerID": f"stand-in://{pod['metadata']['uid']}/{name}",
        "ready": ready,
        "started": ready,
        "restartCount": 0,
        "lastState": {},
        "state": state,
    }


def finished(pod: Object) -> None:
    """All containers ended; well, unless the pod says otherwise."""
    code_text = pod["metadata"].get("annotations", {}).get(_EXIT_CODE, "0")
    code = int(code_text) if code_text.isdecimal() and len(code_text) < 4 else 1
    word = "Completed" if code == 0 else "Error"
    now = clock.now()
    status = pod["status"]
    status["phase"] = "Succeeded" if code == 0 else "Failed"
    for one in status.get("containerStatuses", ()):
        started = one.get("state", {}).get("running", {}).get("startedAt", now)
        ended = {"exitCode": code, "reason": word, "startedAt": started, "finishedAt": now}
        one["state"] = {"terminated": {**ended, "containerID": one.get("containerID", "")}}
        one["ready"] = one["started"] = False
    reason = "PodCompleted" if code == 0 else "PodFailed"
    for type_ in ("Ready", "ContainersReady"):
        set_condition(pod, type_, "False", reason=reason)
