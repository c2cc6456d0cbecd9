"""HTTP extenders: external services that are called for a pod after the plugins.

`extender` is a configured extender; `asking` implements the protocol: the calls of a cycle, and the effect of their
answers. A conversation is a generator: it yields calls and is sent the answers, so that its driver decides how to wait.
`client` makes calls over HTTP, `binding` binds a pod by an extender. `messages` and `answers` are the JSON of both
directions; `whole_kinds` selects the objects that are kept as received from the API server.

Promise: only `client` does I/O. Every result of a call, and every failure, is returned as an answer or raised as an
ExtenderError.
"""
