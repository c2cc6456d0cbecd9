"""Limit the number of running pods in the cluster to the number of licences.

The label `licence` of a pod names the licence it needs. Pods that are being bound count too, because the scheduler has
already assumed them on their nodes.
"""

from dataclasses import dataclass, field

from kubestow.plugin import SKIP, Action, Resource, on, unresolvable


@dataclass
class LicenceArgs:
    licences: dict[str, int] = field(default_factory=dict)


class CountLicences:
    name = "CountLicences"

    def __init__(self, args: LicenceArgs, handle):
        self.licences = args.licences
        self.cluster = handle.cluster

    def requeue_on(self):
        return [on(Resource.ASSIGNED_POD, Action.DELETE, self.frees_licence)]

    def frees_licence(self, pod, old, new):
        return old.metadata.labels.get("licence") == pod.metadata.labels.get("licence")

    def pre_filter(self, pod):
        licence = pod.labels.get("licence")
        if licence is None:
            return SKIP
        used = sum(
            other.labels.get("licence") == licence for pods in self.cluster.nodes.pods for other in pods.values()
        )
        if used >= self.licences.get(licence, 0):
            return unresolvable(f"all {self.licences.get(licence, 0)} licences of {licence} are in use")
        return None
