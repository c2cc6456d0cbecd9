"""The pods that wait to be scheduled, and when each of them is tried again.

A pod is in exactly one place. New pods are *active*, ordered by priority. A popped pod is *in flight* until `done`.
One that was rejected waits in the *pool* until an event happens which, by the hints of the plugins that rejected it,
may let it fit; it then sits out its *backoff* (pods that failed by error have a backoff queue of their own) and is
active again. Pods that a PreEnqueue plugin holds back wait in the pool as *gated*. Events that happen while a pod is
in flight are kept, and replayed should it be rejected.

`scheduling_queue` is the whole; the other modules are its parts.

Promise: synchronous, no I/O; time comes from the clock that is handed in. No operation is slower than O(log n), save
that an event costs as many hints as there are pods rejected by the plugins that listen to it.
"""
