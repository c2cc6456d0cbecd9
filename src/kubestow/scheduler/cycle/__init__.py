"""The scheduling cycle: one pod, one decision, by PreFilter, Filter, Score and selection, or PostFilter.

`scheduling` contains the cycle. `evaluation` filters and scores the nodes; `post_filter` runs preemption if no node is
feasible; `outcome` is the result of a cycle. `sharing` lets equal pods share results; its docstring describes it.
The modules about groups contain the cycle of a pod group.

Promise: synchronous, no I/O; writes are part of the returned outcome.
"""
