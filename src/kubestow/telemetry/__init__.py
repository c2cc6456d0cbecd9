"""What the scheduler reports about itself: metrics and logs.

Other packages update metrics and write log lines where things happen; this package calls none of them.
It imports no module itself, so that a module that only logs does not load the metrics.

Promise: reporting is cheap (a counter, a histogram or a disabled log line costs a fraction of a microsecond), never
blocks, never raises, and never exposes a secret.
"""
