"""Which plugins the predicates and priorities became, and where they are enabled."""

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
    # These were plugins of their own; NodeVolumeLimits does now what they did.
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
"""In the order in which predicates are checked, whatever the order in a Policy."""

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
OTHER_NAMES = {"PodFitsPorts": "PodFitsHostPorts", "ServiceSpreadingPriority": "SelectorSpreadPriority"}
"""Names from older days that are still understood."""

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
"""In the order in which their plugins score: by name."""

NO_PRIORITY = "EqualPriority"
"""Scored all nodes alike; it became nothing."""
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
    # Newer than Policy: what these two hold back could not be bound anyway.
    "preEnqueue": ("SchedulingGates", "DefaultPreemption"),
    "queueSort": ("PrioritySort",),
    "postFilter": ("DefaultPreemption",),
    "bind": ("DefaultBinder",),
}
FILTERING_POINTS = ("preFilter", "filter", "reserve", "preBind")
"""Where the plugin of a predicate is enabled, as far as it implements them."""
SCORING_POINTS = ("preScore", "score")
"""Where the plugin of a priority is."""
