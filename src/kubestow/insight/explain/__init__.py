"""Where would this pod go, why not elsewhere, and what would have to change? Answered by the scheduler's own engine.

`World` is a cluster made from objects, with the profiles of a configuration and a clock that stands still. `DryRun`
judges every node for a pod there and tells it as a decision. `would_fit_if` tries changes of the pod and the world.

Promise: nothing is written anywhere, and a world that was changed for a trial is as before.
"""
