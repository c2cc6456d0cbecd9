"""The scheduling engine: from changes in the cluster to bound pods.

    cluster                nodes, pods and other objects, as columns, counts and stores
    framework              the plugin interfaces, and the one caller of all plugins
    plugins, in_tree       the plugins of kube-scheduler, and their registry
    extenders              HTTP extenders
    profiles               the plugins of each scheduler name
    intake                 changes of objects, to `cluster` and `queue`
    queue                  the pods that wait to be scheduled
    cycle                  the scheduling cycle: from a pod to a node
    binding                from a node to a bound pod; evictions
    attempts, groups, loop    pop pods or groups, run cycles, carry out the outcomes
    observer               reports of all this to recorders
    assembly               builds a scheduler from its configuration
    offline_handle         plugin handles for tools and tests that run no scheduler

`cluster`, `queue` and `cycle` are synchronous; the others wait only on the event loop. The caller provides the clock, a
random number generator and the API. The engine imports neither the API client nor pages, explanations or simulations.
"""
