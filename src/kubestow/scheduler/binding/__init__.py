"""The binding of placed pods, which runs beside later cycles: permission, PreBind, Bind, PostBind, or a rollback.

`binder` binds one placed pod; `waiting` holds pods that Permit delays; `evictions` carries out preemptions;
`dispatcher` sends every write about a pod, in order for each pod.

Promise: all waiting happens on the event loop, so time may be virtual; a placed pod ends up bound or back in the queue.
"""
