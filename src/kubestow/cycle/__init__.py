"""One pod, one decision: prefilter, filter, score, select; and preemption beside it.

`scheduling` is the way of a pod. `evaluation` says of every node whether it will do and how good it is; `table` lays an
evaluation out for people; `outcome` is what a cycle comes to.

What pods share: `classes` knows all classes in use and starts a `class_evaluation` by a pod's `signature`. `groups`
tells plugins apart by what they look at, `judges` makes them ready. `node_class` and `pod_class` remember rows;
`lone_pod` is for a pod that is like no other, `ahead` for several of those at once.

Promise: synchronous and pure; what must be written anywhere is returned, not done.
"""
