"""Where a node stands: the labels of region, zone and host."""

from collections.abc import Mapping

HOSTNAME_LABEL = "kubernetes.io/hostname"
ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
LEGACY_ZONE_LABEL = "failure-domain.beta.kubernetes.io/zone"
LEGACY_REGION_LABEL = "failure-domain.beta.kubernetes.io/region"


def zone_of(labels: Mapping[str, str]) -> tuple[str, str]:
    """A node's region and zone, empty where unknown; where a legacy label is present it decides, as in Kubernetes."""
    region = labels.get(LEGACY_REGION_LABEL)
    zone = labels.get(LEGACY_ZONE_LABEL)
    return (
        labels.get(REGION_LABEL, "") if region is None else region,
        labels.get(ZONE_LABEL, "") if zone is None else zone,
    )
