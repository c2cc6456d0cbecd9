"""The Kubernetes API over HTTP/1.1: credentials, transport, list+watch, events, leases.

`access` says where the API server is and who we are; `api` sends one request; `informers` keeps a set of resources
in step with the server; `requests` holds every write the scheduler makes; `events` and `election` build on those.
Promise: everything runs in one asyncio loop and takes its time from it, every wait has a limit, no secret is ever
part of a log line or of an error message.
"""
