"""The reference server: a correct Store Orders Service, and ways of making it wrong or unusual on purpose.

Standard library only. Read it in this order:

    orders.py    orders, their store and the transition table; no HTTP
    messages.py  a request and a response as values
    api.py       request -> response: authentication, routing, the two operations; no sockets
    wire.py      bytes -> request, response -> bytes
    server.py    listeners, connections, time-outs
    control.py   the state provider and the log of what was received, on a listener of their own
    seed.py      the orders at the start
    running.py   a service with its listeners, started and stopped; `serve`, the whole program
    amend.py     ways to change one part of a service from outside, for faults and variants
    registry.py  the catalogues of faults and variants
    faults/      services that break one requirement each
    variants/    services that are correct and different
"""
