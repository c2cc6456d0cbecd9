"""One pod, one decision: prefilter, filter, score, select; and preemption beside it.

`evaluation` says of every node whether it will do and how good it is; `table` lays an evaluation out for people.

Promise: synchronous and pure; what must be written anywhere is returned, not done.
"""
