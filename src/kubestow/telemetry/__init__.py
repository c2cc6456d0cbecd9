"""What the scheduler tells about itself: metrics, pod conditions, logs.

Everything here is told by others and asks nobody: the core and the client feed metrics and log where things happen.
Nothing is imported on the way in, so that a module that only wants to log does not pay for metrics.

Promise: telling is cheap (a counter or histogram costs a fraction of a microsecond, a log line that is not wanted as
much), never blocks, never raises, and never gives a secret away.
"""
