"""From a decision to a bound pod, beside later cycles: permission, PreBind, Bind, PostBind; or everything undone.

`binder` carries one placed pod through; `waiting` holds pods that Permit delays; `evictions` carries out preemption;
`dispatcher` is where every write about a pod goes through, in order for each pod.

Promise: all waiting is on the event loop, so that time may be virtual; nothing is lost: a placed pod ends up bound, or
back in the queue.
"""
