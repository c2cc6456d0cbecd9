"""The scheduling engine: from changes in the cluster to bound pods.

        cluster      nodes, pods and other objects, as columns, counts and stores
        framework    the plugin interfaces, and the one caller of all plugins
    plugins      the plugins of kube-scheduler
    extenders    HTTP extenders
        queue        the pods that wait to be scheduled
    cycle        the scheduling cycle: from a pod to a node
    binding      from a node to a bound pod
        loop         pops pods from the queue and runs one cycle after the other
    assembly     builds a scheduler from its configuration

The engine does not wait, read the time, or draw random numbers: its caller provides the clock, a random number
generator and the API. It does not import its users: the API client, pages, explanations and simulations.
"""
