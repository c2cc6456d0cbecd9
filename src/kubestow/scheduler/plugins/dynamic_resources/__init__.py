"""DynamicResources: devices for a pod's claims.

`plugin` is the plugin. `claims` and `extended` find the claims of a pod; `requests`, `selecting` and `capacity` make
ready what they ask for; `search` looks for it on a node and `results` writes down what was found; `shapes` remembers
where it can be found, and `judging` says so of rows. `writing` tells the API server; `conditions` sees to devices that
must be made ready first.
"""

from kubestow.scheduler.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
