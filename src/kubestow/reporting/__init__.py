"""What the scheduler tells about itself: metrics, pod conditions, records of decisions, logs.

Everything here is told by others and asks nobody: the observers of the framework, the queue and the client are
implemented by shape, without importing them. Nothing is imported on the way in, so that a module that only wants to log
does not pay for metrics.

Promise: telling is cheap (a counter or histogram costs a fraction of a microsecond, a log line that is not wanted one
comparison), never blocks, never raises, and never gives a secret away.
"""
