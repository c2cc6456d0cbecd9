"""Notes on the parts of a translated Policy that kube-scheduler v1.37 does not support."""

from collections.abc import Iterator

from kubestow.config.configuration import SchedulerConfiguration
from kubestow.config.expansion import enabled_names
from kubestow.config.plugin_points import LEGACY

_ALTERNATIVES = {
    "NodeLabel": "use node affinity in the pods, or addedAffinity of NodeAffinity",
    "NodePreferAvoidPods": "taint the nodes with PreferNoSchedule",
    "NodeResourcesLeastAllocated": "score with NodeResourcesFit and the strategy LeastAllocated",
    "NodeResourcesMostAllocated": "score with NodeResourcesFit and the strategy MostAllocated",
    "RequestedToCapacityRatio": "score with NodeResourcesFit and the strategy RequestedToCapacityRatio",
    "ServiceAffinity": "use pod affinity and topology spread constraints in the pods",
}


def notes(configuration: SchedulerConfiguration) -> Iterator[str]:
    """Yield a sentence for each part of a configuration that only Kubestow supports."""
    for profile in configuration.profiles:
        for name in sorted(enabled_names(profile.plugins) & LEGACY.keys()):
            yield f"kube-scheduler no longer has the plugin {name}; there, {_ALTERNATIVES[name]}."
        if profile.alwaysCheckAllPredicates:
            yield "kube-scheduler no longer has alwaysCheckAllPredicates; there, remove the field."
