"""What of a translated Policy kube-scheduler v1.36 itself would not understand."""

from collections.abc import Iterator

from kubestow.config.configuration import SchedulerConfiguration
from kubestow.config.expansion import enabled_names
from kubestow.config.plugin_points import LEGACY

_INSTEAD = {
    "NodeLabel": "use node affinity in the pods, or addedAffinity of NodeAffinity",
    "NodePreferAvoidPods": "taint the nodes with PreferNoSchedule",
    "NodeResourcesLeastAllocated": "score with NodeResourcesFit and the strategy LeastAllocated",
    "NodeResourcesMostAllocated": "score with NodeResourcesFit and the strategy MostAllocated",
    "RequestedToCapacityRatio": "score with NodeResourcesFit and the strategy RequestedToCapacityRatio",
    "ServiceAffinity": "use pod affinity and topology spread constraints in the pods",
}


def notes(configuration: SchedulerConfiguration) -> Iterator[str]:
    """A sentence for each part of it that only Kubestow has."""
    for profile in configuration.profiles:
        for name in sorted(enabled_names(profile.plugins) & LEGACY.keys()):
            yield f"kube-scheduler has no plugin {name} any more; there, {_INSTEAD[name]}."
        if profile.alwaysCheckAllPredicates:
            yield "kube-scheduler has no alwaysCheckAllPredicates any more; there, remove the field."
