#!/usr/bin/env python3
"""A state provider that hands every message on to $STATES, but for the one numbered $TURN: then it fails, or says that
it cannot do this, or interrupts or kills the process that asks ($DOES)."""

import json
import os
import signal
import sys
import urllib.request
from pathlib import Path

message = sys.stdin.read()
count = Path(os.environ["COUNT"])
with count.open("a") as file:
    file.write(json.loads(message)["action"] + "\n")
if len(count.read_text().splitlines()) == int(os.environ["TURN"]):
    match os.environ["DOES"]:
        case "fail":
            sys.exit("out of orders")
        case "cannot":
            sys.exit(3)
        case "interrupt":
            os.kill(os.getppid(), signal.SIGINT)
        case "kill":
            os.kill(os.getppid(), signal.SIGKILL)
            sys.exit(1)
asked = urllib.request.Request(os.environ["STATES"], message.encode(), {"Content-Type": "application/json"})
print(urllib.request.urlopen(asked).read().decode())
