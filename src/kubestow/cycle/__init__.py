"""One pod, one decision: prefilter, filter, score, select; and preemption beside it.

`scheduling` is the way of a pod. `evaluation` says of every node whether it will do and how good it is; `post_filter`
tries to make room where none will do; `outcome` is what a cycle comes to. `sharing` lets equal pods share work: its
docstring is all there is to know about it.

Promise: synchronous and pure; what must be written anywhere is returned, not done.
"""
