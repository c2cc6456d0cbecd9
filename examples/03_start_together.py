"""Hold the pods of a group until all of them have a node, then bind them together.

Pods of a group have the label `group`; the label `group-size` is the number of pods in the group. The first pods keep
their node for at most a minute; if the others do not arrive, the node is released.
"""

from kubestow.plugin import Wait

SECONDS = 60.0


class StartTogether:
    name = "StartTogether"

    def __init__(self, args, handle):
        self.waiting_pods = handle.waiting_pods

    def waiting(self, pod):
        group = pod.labels.get("group")
        return [other for other in self.waiting_pods if other.pod.labels.get("group") == group]

    def permit(self, state, pod, node):
        if "group" not in pod.labels:
            return None
        others = self.waiting(pod)
        if len(others) + 1 < int(pod.labels.get("group-size", "1")):
            return Wait(SECONDS)
        for other in others:
            other.allow(self.name)
        return None

    def reserve(self, state, pod, node):
        return None

    def unreserve(self, state, pod, node):
        # If one pod fails, reject the others: an incomplete group must not hold nodes.
        for other in self.waiting(pod) if "group" in pod.labels else ():
            other.reject(self.name, f"pod {pod.name} of the group gave up")
