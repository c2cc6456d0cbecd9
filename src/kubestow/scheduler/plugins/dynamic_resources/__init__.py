"""DynamicResources: allocates devices for the resource claims of pods.

`plugin` has the extension points. `claims` and `extended` return the claims of a pod; `requests`, `selection` and
`capacity` compile their requests; `search` finds devices on one node and `results` converts them to an
`AllocationResult`; `shapes` caches the results for equal claims, and `evaluation` maps them to rows.
`pending_allocations` keeps devices that are reserved but not yet written, `claim_writer` writes claims to the API
server, and `conditions` waits for the binding conditions of devices.
"""

from kubestow.scheduler.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
