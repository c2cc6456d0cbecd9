"""The interfaces of plugins, and everything that calls a plugin.

`plugin` defines the extension points; `contract` the valid results of each method of a plugin; `registry` holds plugin
factories and validates plugins; `profile` builds the plugins of one scheduler name, in order, with weights. A `hook` is
a method ready to be called, and `caller` the one place from which hooks are called: calls are timed, counted, checked
and attributed there. `guard` protects the scheduler's objects from plugins that are not built in. `verdicts` stores the
results of filters by row, and builds messages on demand; `plain` adapts plugins written node by node.

Promise: plugins are selected by what they implement, never by name; no I/O, no clock, no randomness of its own.
"""
