"""VolumeBinding: finds and binds volumes for the claims of a pod.

`plugin` has the extension points. `claims` groups the claims of a pod by state. `finding` evaluates them on all nodes
at once: `affinity` checks bound volumes, `candidates` finds free volumes, `provisioning` checks where new ones can be
created. `scoring` scores the result, and `binding` writes it to the API server.
"""

from kubestow.scheduler.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
