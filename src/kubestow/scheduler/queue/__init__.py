"""The pods that wait to be scheduled, and when each of them is retried.

A pod is in exactly one place. New pods are *active*, ordered by priority. A popped pod is *in flight* until `done`.
A rejected pod waits in the *pool* until an event occurs that, according to the queueing hints of the plugins that
rejected it, may make it schedulable. It then waits for the end of its *backoff* and becomes active again. Pods that
failed with an error have a backoff queue of their own. Pods that a PreEnqueue plugin rejects are *gated* and wait in
the pool. Events that occur while a pod is in flight are recorded, and replayed if the pod is rejected.

`scheduling_queue` contains the queue; the other modules are its parts.

Promise: synchronous, no I/O; the clock is passed in. Every operation takes O(log n), except that an event calls one
hint for each pod, or group of equivalent pods (`Registration.alike`), rejected by a plugin registered for the event.
"""
