"""What the scheduler serves about itself, over HTTPS: health, metrics, configuration, flags, status.

    serving         listens; every request is authenticated, authorized, answered
    tls             the certificate it shows, made where there is none, read again when it changes
    authentication  who asks: a front proxy's word, a client certificate, a token that the API server knows
    authorization   who may read: some paths everybody, the others who the API server allows
    pages           which path is what; health, zpages, profiling (pprof), resource_metrics: those that take some making

Promise: nothing served changes what the scheduler does, save the verbosity of its log.
"""
