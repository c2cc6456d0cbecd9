"""The plugins that replaced the predicates and priorities, and the extension points at which they are enabled."""

from collections.abc import Mapping

PREDICATES: Mapping[str, tuple[str, ...]] = {
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "GeneralPredicates": ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"),
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "MatchNodeSelector": ("NodeAffinity",),
    "PodFitsResources": ("NodeResourcesFit",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "CheckNodeLabelPresence": ("NodeLabel",),
    "CheckServiceAffinity": ("ServiceAffinity",),
    # These were separate plugins, which NodeVolumeLimits replaced.
    "MaxEBSVolumeCount": ("NodeVolumeLimits",),
    "MaxGCEPDVolumeCount": ("NodeVolumeLimits",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("NodeVolumeLimits",),
    "MaxCinderVolumeCount": ("NodeVolumeLimits",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
}
"""The plugins of each predicate, in the order in which predicates run, independent of the order in a Policy."""

MANDATORY_PREDICATES = frozenset({"CheckNodeUnschedulable", "PodToleratesNodeTaints"})
DEFAULT_PREDICATES = frozenset(PREDICATES) - {
    "HostName",
    "PodFitsHostPorts",
    "MatchNodeSelector",
    "PodFitsResources",
    "CheckNodeLabelPresence",
    "CheckServiceAffinity",
    "MaxCinderVolumeCount",
}
DEPRECATED_NAMES = {"PodFitsPorts": "PodFitsHostPorts", "ServiceSpreadingPriority": "SelectorSpreadPriority"}
"""Deprecated names that are still accepted."""

PRIORITIES: Mapping[str, str] = {
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "ImageLocalityPriority": "ImageLocality",
    "InterPodAffinityPriority": "InterPodAffinity",
    "LeastRequestedPriority": "NodeResourcesLeastAllocated",
    "MostRequestedPriority": "NodeResourcesMostAllocated",
    "NodeAffinityPriority": "NodeAffinity",
    "NodeLabel": "NodeLabel",
    "NodePreferAvoidPodsPriority": "NodePreferAvoidPods",
    "RequestedToCapacityRatio": "RequestedToCapacityRatio",
    "SelectorSpreadPriority": "PodTopologySpread",
    "ServiceAffinity": "ServiceAffinity",
    "TaintTolerationPriority": "TaintToleration",
}
"""The plugin of each priority, in the order in which the plugins score: by name."""

NO_PRIORITY = "EqualPriority"
"""A priority that gave all nodes the same score; no plugin replaced it."""
DEFAULT_PRIORITIES = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10_000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
    "EvenPodsSpreadPriority": 2,
}

ALWAYS_ENABLED = {
    # Newer than Policy: pods that these two hold back could not be bound anyway.
    "preEnqueue": ("SchedulingGates", "DefaultPreemption"),
    "queueSort": ("PrioritySort",),
    "postFilter": ("DefaultPreemption",),
    "bind": ("DefaultBinder",),
}
FILTERING_POINTS = ("preFilter", "filter", "reserve", "preBind")
"""Extension points at which the plugin of a predicate is enabled if it implements them."""
SCORING_POINTS = ("preScore", "score")
"""Extension points at which the plugin of a priority is enabled if it implements them."""
