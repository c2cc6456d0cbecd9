"""NodeVolumeLimits: rejects nodes whose CSI drivers cannot attach the pod's volumes in addition to those attached.

A CSINode has the limit of attached volumes per driver. Volumes are identified by driver and handle, so that a volume
used by several pods counts once; a claim without a volume counts as a separate volume. Attached are the volumes of the
node's pods and those with a VolumeAttachment for the node.

`plugin` has the extension points; `attachables` returns the volumes that a pod attaches; `counts` maintains the number
of attached volumes per node.
"""

from kubestow.scheduler.plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
