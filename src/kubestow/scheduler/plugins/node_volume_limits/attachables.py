"""The volumes that pods and VolumeAttachments attach to a node, as pairs of driver and handle."""

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
"""A volume attached to a node: driver and handle."""


class ClaimNotFoundError(LookupError):
    """A claim of a pod does not exist."""


def is_attachable(volume: Volume) -> bool:
    """Return whether a pod's volume may need to be attached."""
    return volume.persistentVolumeClaim is not None or volume.ephemeral is not None or old_driver(volume) is not None


def attachables_of(pod: Pod, listers: Listers, *, with_csi_node: bool, lenient: bool = False) -> Iterator[Attachable]:
    """Yield the volumes that a pod attaches to a node with or without a CSINode. Raises ValueError if one is invalid.

    A missing claim raises ClaimNotFoundError; with `lenient` it is ignored.
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
    """Yield the volumes with a VolumeAttachment for a node."""
    for attachment in listers.volume_attachments.group(node):
        name = attachment.spec.source.persistentVolumeName
        volume = listers.volumes.received(name) if name is not None else None
        if attachment.spec.attacher and volume is not None and volume.spec.csi is not None:
            yield attachment.spec.attacher, volume.spec.csi.volumeHandle


def limits_of(csi_node: CSINode | None) -> dict[str, int]:
    """Return the maximum number of attached volumes by driver; drivers without an entry have no limit."""
    if csi_node is None:
        return {}
    return {
        driver.name: driver.allocatable.count
        for driver in csi_node.spec.drivers
        if driver.allocatable is not None and driver.allocatable.count is not None
    }


def handle_in_pod(volume: Volume) -> str:
    """Return the handle of an inline volume of a migrated driver. Raises ValueError."""
    try:
        return inline_handle(volume)
    except TranslationError as error:
        raise ValueError(f"converting volume({volume.name}) from inline to csi: {error}") from None


def _attachable(claim: PersistentVolumeClaim, listers: Listers, with_csi_node: bool) -> Attachable | None:
    """Return the volume of a claim or, before it has one, a placeholder for a volume of its class."""
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
    # Drivers do not use handles like this.
    return driver, f"\0{claim.metadata.namespace}/{claim.metadata.name}"
