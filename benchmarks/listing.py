"""One side of the figure about large listings, in a process of its own so that its memory is its own. Run as
`python -m benchmarks.listing verify|loads FILE SIZE sound|broken|extended`; prints seconds and peak memory as JSON."""

from __future__ import annotations

import gc
import json
import resource
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path

from conformance.contract.listing import Listing

FIRST = datetime(2026, 11, 21)


def body(size: int, kind: str) -> bytes:
    """A listing of `size` orders, about 110 bytes each; `broken`: the one in the middle has a wrong type, `extended`:
    each has a field that the specification does not know."""
    further = '"customer": 7, ' if kind == "extended" else ""
    orders = [
        f'{{{further}"id": {10**12 + 7 * i}, "petId": {i % 5000}, "quantity": {i % 9 + 1}, '
        f'"shipDate": "{FIRST + timedelta(seconds=97 * i):%Y-%m-%dT%H:%M:%S}.{i % 1000:03}Z", '
        f'"complete": {"true" if i % 2 else "false"}}}'
        for i in range(size)
    ]
    if kind == "broken":
        orders[size // 2] = orders[size // 2].replace('"quantity": ', '"quantity": "x", "x": ')
    return f"[{', '.join(orders)}]".encode()


def verify(text: bytes, given: list[int]) -> list[object]:
    """All that is wrong with a listing: every demand of the suite on it, and the `given` orders that it lacks."""
    found = Listing.read(text)
    assert found is not None, "an array"
    return [
        *found.problems(),
        *found.doubled_ids(),
        *found.unconventional_dates(),
        *found.unconventional_integers(),
        *(set(given) - found.ids),
    ]


def main(way: str, file: str, size: int, kind: str) -> None:
    """Measure one way."""
    text = Path(file).read_bytes()
    given = [10**12 + 7 * i for i in range(size)]
    gc.collect()
    started = time.perf_counter()
    problems = len(verify(text, given)) if way == "verify" else len(json.loads(text)) - size
    took = time.perf_counter() - started
    if problems != int(kind == "broken" and way == "verify"):
        raise SystemExit(f"{problems} problems found in a listing that is {kind}")
    print(json.dumps({"time": took, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
