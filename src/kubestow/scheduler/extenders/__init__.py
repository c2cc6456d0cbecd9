"""HTTP extenders: services of their own that are asked about a pod after the plugins.

`extender` is one of them as configured; `asking` is the conversation with all of them: which calls a cycle makes and
what it takes from the answers. A conversation is a generator: it yields calls and is sent the answers, so that whoever
drives it decides how to wait. `client` makes calls over HTTP, `binding` has an extender bind a pod. `messages` and
`answers` are the JSON of both directions; `whole_kinds` tells which objects are kept as the API server has them.

Promise: only `client` does I/O. Nothing that an extender answers, or fails to, comes out as anything but an answer or
an ExtenderError.
"""
