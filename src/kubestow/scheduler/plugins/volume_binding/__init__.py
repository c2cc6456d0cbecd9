"""VolumeBinding: volumes for a pod's claims.

`plugin` is the plugin; `claims` sorts the claims of a pod, `finding` tries them on all nodes at once with the help of
`affinity`, `candidates` and `provisioning`; `binding` carries out what was found; `scoring` says how good it is.
"""

from kubestow.scheduler.plugins.volume_binding.plugin import VolumeBinding

__all__ = ["VolumeBinding"]
