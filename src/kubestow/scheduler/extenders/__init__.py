"""HTTP extenders: external services that are called for a pod after the plugins.

`extender` is a configured extender; `protocol` has the calls of a cycle, the effect of their answers, and the binding
of a pod. A conversation is a generator: it yields calls and is sent the answers, so that its driver decides how to
wait. `client` makes calls over HTTP. `messages` and `answers` are the JSON of both directions; `whole_kinds` selects
the objects that are kept as received from the API server.

Promise: only `client` does I/O. Every result of a call, and every failure, is returned as an answer or raised as an
ExtenderError.
"""
