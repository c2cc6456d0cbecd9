"""The HTTPS server of the scheduler: health, metrics, configuration, flags, status.

    serving         the server: every request is authenticated, authorized and answered
    tls             the serving certificate: created if there is none, reloaded when it changes
    authentication  the user of a request: from a front proxy, a client certificate, or a token the API server checks
    authorization   access to paths: some are open to all, for the others the API server decides
    pages           the handler of each path; health, zpages, profiling (pprof), resource_metrics: the larger pages

Promise: no page changes the behaviour of the scheduler, except for the verbosity of its log.
"""
