"""The topology labels of a node: region, zone and host."""

from collections.abc import Mapping

HOSTNAME_LABEL = "kubernetes.io/hostname"
ZONE_LABEL = "topology.kubernetes.io/zone"
REGION_LABEL = "topology.kubernetes.io/region"
LEGACY_ZONE_LABEL = "failure-domain.beta.kubernetes.io/zone"
LEGACY_REGION_LABEL = "failure-domain.beta.kubernetes.io/region"


def zone_of(labels: Mapping[str, str]) -> str:
    """Return an identifier of a node's region and zone, empty without either label; legacy labels take precedence."""
    region = labels.get(LEGACY_REGION_LABEL)
    if region is None:
        region = labels.get(REGION_LABEL, "")
    zone = labels.get(LEGACY_ZONE_LABEL)
    if zone is None:
        zone = labels.get(ZONE_LABEL, "")
    # The separator cannot be part of a label's value.
    return f"{region}:\0:{zone}" if region or zone else ""
