"""The contract between the scheduler and its plugins, and everything that calls a plugin.

`plugin` lists the extension points; `contract` says what each method of a plugin may answer; `registry` knows the
plugins and checks them; `profile` builds the plugins of one scheduler name, in order, with weights. A method ready to
be called is a `hook`, and `caller` is the one place from which hooks are called: calls are timed, counted, checked and
attributed there. `guard` protects the scheduler's objects from plugins that are not its own. `verdicts` holds what
filters said of each row, and puts it into words only when asked; `plain` adapts plugins written node by node.

Promise: plugins are known by what they implement, never by name; no I/O, no clock, no randomness of its own.
"""
