"""The Kubernetes API over HTTP/1.1: credentials, transport, list+watch, events, leases.

`access` finds the API server and the credentials; `api` sends one request; `informers` runs a `reflector` (list, watch,
expired versions) for each resource, which stores its objects in an `informer`; `writes` contains the writes of the
scheduler; `events` and `election` have their own.
Promise: everything runs in one asyncio loop and uses its clock, every wait has a limit, and no secret is part of a log
line or an error message.
"""
