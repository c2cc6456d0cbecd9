"""The scheduling engine: from changes in the cluster to bound pods.

    cluster      nodes, pods and other objects, as columns, counts and stores
    framework    the contract with plugins, and the one caller of all of them
    plugins      the plugins of kube-scheduler
    extenders    HTTP extenders
    queue        pods that wait to be scheduled
    cycle        the scheduling cycle: from a pod to a node
    binding      from a node to a bound pod
    loop         takes pods from the queue, one cycle after the other
    assembly     builds a scheduler from its configuration

The engine does not wait, read the time, or draw random numbers: its caller provides clock, random numbers and the API.
It does not know its users: the API client, pages, explanations and simulations.
"""
