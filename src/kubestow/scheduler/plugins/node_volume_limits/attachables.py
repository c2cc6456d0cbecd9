"""What pods and VolumeAttachments attach to a node, as drivers and handles."""

from collections.abc import Iterator

from kubestow.api.claims import claim_class, claim_name_of, not_found, ownership_problem
from kubestow.api.csi_translation import (
    MIGRATED,
    SUCCESSORS,
    TranslationError,
    inline_handle,
    old_driver,
    translated,
)
from kubestow.api.pod import Pod, Volume
from kubestow.api.storage import CSINode, PersistentVolumeClaim
from kubestow.scheduler.cluster.listers import Listers

Attachable = tuple[str, str]
"""A volume as a node attaches it: driver and handle."""


class ClaimNotFoundError(LookupError):
    """A pod has a claim that does not exist."""


def is_attachable(volume: Volume) -> bool:
    """Whether a pod's volume may be something to attach."""
    return volume.persistentVolumeClaim is not None or volume.ephemeral is not None or old_driver(volume) is not None


def attachables_of(pod: Pod, listers: Listers, *, with_csi_node: bool, lenient: bool = False) -> Iterator[Attachable]:
    """What a pod attaches to a node with or without a CSINode; raises ValueError if that cannot be said.

    A claim that does not exist raises ClaimNotFoundError or, with `lenient`, attaches nothing.
    """
    for volume in pod.spec.volumes:
        name = claim_name_of(pod, volume)
        if name is None:
            driver = old_driver(volume)
            if driver in MIGRATED and with_csi_node:
                yield SUCCESSORS[driver].driver, handle_in_pod(volume)
            continue
        if not name:
            raise ValueError("PersistentVolumeClaim had no name")
        claim = listers.claims.received(f"{pod.metadata.namespace}/{name}")
        if claim is None:
            if lenient:
                continue
            raise ClaimNotFoundError(f"looking up PVC {pod.metadata.namespace}/{name}: {not_found(name)}")
        if volume.ephemeral is not None and (problem := ownership_problem(pod, claim)):
            raise ValueError(problem)
        attachable = _attachable(claim, listers, with_csi_node)
        if attachable is not None and all(attachable):
            yield attachable


def attached_to(node: str, listers: Listers) -> Iterator[Attachable]:
    """What VolumeAttachments say of a node."""
    for attachment in listers.volume_attachments.group(node):
        name = attachment.spec.source.persistentVolumeName
        volume = listers.volumes.received(name) if name is not None else None
        if attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
            yield attachment.spec.attacher, volume.spec.csi.volumeHandle


def limits_of(csi_node: CSINode | None) -> dict[str, int]:
    """How many volumes of each driver a node can attach; no limit for drivers that are not listed."""
    if csi_node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def handle_in_pod(volume: Volume) -> str:
    """The handle of a volume of a migrated driver, named in a pod; raises ValueError."""
    try:
        return inline_handle(volume)
    except TranslationError as error:
        raise ValueError(f"converting volume({volume.name}) from inline to csi: {error}") from None


def _attachable(claim: PersistentVolumeClaim, listers: Listers, with_csi_node: bool) -> Attachable | None:
    """What a claim stands for: its volume or, before it has one, a volume of its class."""
    volume = listers.volumes.received(claim.spec.volumeName) if claim.spec.volumeName else None
    if volume is None:
        return _to_be_provisioned(claim, listers, with_csi_node)
    source = volume.spec.csi
    if source is None:
        if old_driver(volume.spec) not in MIGRATED or not with_csi_node:
            return None
        try:
            source = translated(volume).spec.csi
        except TranslationError:
            return None
        assert source is not None
    return source.driver, source.volumeHandle


def _to_be_provisioned(claim: PersistentVolumeClaim, listers: Listers, with_csi_node: bool) -> Attachable | None:
    name = claim_class(claim)
    found = listers.storage_classes.get(name) if name else None
    if found is None:
        return None
    driver = found.provisioner
    if driver in SUCCESSORS:
        if driver not in MIGRATED or not with_csi_node:
            return None
        driver = SUCCESSORS[driver].driver
    # No driver hands out a handle like this.
    return driver, f"\0{claim.metadata.namespace}/{claim.metadata.name}"
