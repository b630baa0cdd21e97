"""The bare loop of the overhead figure: sends the requests of a HAR file again, one after the other, each on a
connection of its own as the suite does, and nothing else. Run as `python -m benchmarks.replay HAR`, with the key in a
variable."""

from __future__ import annotations

import json
import os
import sys

import httpx


def main(har: str, key: str) -> int:
    """Send them; returns how many there are. Raises httpx.HTTPError for one that gets no answer."""
    with open(har, encoding="utf-8") as file:
        entries = json.load(file)["log"]["entries"]
    transport = httpx.HTTPTransport(verify=False, limits=httpx.Limits(max_keepalive_connections=0))
    for entry in entries:
        asked = entry["request"]
        headers = [(field["name"], field["value"].replace("<the key>", key)) for field in asked["headers"]]
        body = asked["postData"]["text"] if "postData" in asked else None
        response = transport.handle_request(httpx.Request(asked["method"], asked["url"], headers=headers, content=body))
        response.read()
        response.close()
    return len(entries)


if __name__ == "__main__":
    print(main(sys.argv[1], os.environ["STORE_ORDERS_BENCHMARK_KEY"]))
