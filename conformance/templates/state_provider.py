#!/usr/bin/env python3
"""A state provider for your Store Orders Service: places orders in its store, and takes them away again.

The suite starts this once for each message, with the message as JSON on standard input, and reads the answer from
standard output. Exit status 3 says "cannot do this" (a chosen id, an empty store); any other but 0 is a failure.
Replace what stands at the top, the three functions included: here the store is a SQLite file, as an example. It has to
be the store of your service: orders in another one are not listed, or have the ids of somebody else's orders.

Chosen ids may be as large as 2^63-1: exit with 3 where the database counts up from the largest id (AUTO_INCREMENT),
which such an id would end. The suite notices such counters, and then chooses no ids.
"""

import json
import os
import sqlite3
import sys

# with: CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT, pet_id INTEGER, quantity INTEGER)
STORE_FILE = "store.db"
if not os.path.exists(STORE_FILE):
    sys.exit(f"{STORE_FILE} is not there: have {sys.argv[0]} place orders in the store of your service")
STORE = sqlite3.connect(STORE_FILE)


def place(status: str, order_id: int | None = None) -> int:
    """Place one order, pending or shipped, with this id or any; return its id. An order of that id is replaced."""
    statement = "INSERT OR REPLACE INTO orders VALUES (?, ?, 1, 1)"
    return int(STORE.execute(statement, (order_id, status)).lastrowid or 0)


def remove(order_id: int) -> None:
    """Remove one order, if it is there."""
    STORE.execute("DELETE FROM orders WHERE id = ?", (order_id,))


def remove_all() -> None:
    """Empty the store. On a store that others use, say instead: sys.exit(3)"""
    STORE.execute("DELETE FROM orders")


message = json.load(sys.stdin)
params = message["params"]
answer = {}
if message["action"] == "teardown":
    for order_id in params["orderIds"]:
        remove(order_id)
elif message["state"] == "no orders":
    remove_all()
else:
    status = message["state"].removesuffix(" orders")  # "pending" or "shipped"
    wanted = params.get("ids") or [None] * params["count"]
    answer["orderIds"] = [place(status, order_id) for order_id in wanted]
STORE.commit()
json.dump(answer, sys.stdout)
