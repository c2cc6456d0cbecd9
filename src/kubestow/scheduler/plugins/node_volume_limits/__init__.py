"""NodeVolumeLimits: nodes whose CSI drivers can attach the pod's volumes besides those attached already.

A CSINode says how many volumes of each driver its node can attach. Volumes are told apart by driver and handle, so that
one that several pods use counts once; a claim that has no volume yet counts as a volume of its own. Attached are the
volumes of the node's pods, and those that a VolumeAttachment says are (still) attached.

`plugin` is the plugin; `attachables` says what a pod attaches; `counts` keeps how many volumes each node has attached.
"""

from kubestow.scheduler.plugins.node_volume_limits.plugin import NodeVolumeLimits

__all__ = ["NodeVolumeLimits"]
