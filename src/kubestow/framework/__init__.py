"""The contract between the scheduler and its plugins, and everything that calls a plugin.

`plugin` lists the extension points and what a plugin may return; `registry` knows the plugins and checks them;
`profile` builds the plugins of one scheduler name, in order, with weights; `caller` is the one place from which plugins
are called, where calls are timed, counted and attributed; `verdicts` holds what filters said of each row, and puts it
into words only when asked; `plain` adapts plugins written node by node.

Promise: plugins are known by what they implement, never by name; no I/O, no clock, no randomness of its own.
"""
