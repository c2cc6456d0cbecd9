"""NodeResourceTopologyMatch: places pods on nodes whose kubelet can align them with NUMA zones.

An agent on each node reports, in a NodeResourceTopology, what each zone of the node has and how the topology manager of
its kubelet is configured. From these the plugin predicts whether the kubelet will admit a pod (`alignment`), and how
well the pod fits (`scoring`). A report is late by nature: `reservations` are what pods have taken since.
"""

from kubestow.contrib.numa.plugin import NodeResourceTopologyMatch

__all__ = ["NodeResourceTopologyMatch"]
