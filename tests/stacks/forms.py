"""The forms of the two vendors' servers: correct ones, and wrong ones with the requirement that each breaks.

A correct form decides something the specification leaves open, and must come out conformant. A wrong form has one
fault, and must fail the requirement named, and no other of these families but those in `also`, which it breaks as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

UUID_KEY = "3f2b8c1e-9d4a-4e7b-8f60-1a2b3c4d5e6f"
JWT_KEY = (
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4ifQ.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
)
PLAIN_KEY = "sk_live_9fQ2xLr7Wm4TzB8n"


@dataclass(frozen=True)
class Correct:
    """A conformant service."""

    vendor: str
    settings: dict[str, Any]
    key: str = PLAIN_KEY
    excluded: tuple[str, ...] = ()
    recommended: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        words = [f"{name}={value}" for name, value in self.settings.items()] or ["plain"]
        return "-".join([self.vendor, *words, *([] if self.key == PLAIN_KEY else [f"key-of-{len(self.key)}"])])


@dataclass(frozen=True)
class Wrong:
    """A service with one fault."""

    vendor: str
    fault: str
    requirement: str
    also: tuple[str, ...] = ()
    key: str = PLAIN_KEY
    required: bool = True

    @property
    def name(self) -> str:
        return f"{self.vendor}-{self.fault}"


CORRECT = [
    Correct("fastapi", {}),
    Correct("fastapi", {"again": 409, "cancelled": "marked", "odd_orders": True, "loose_ids": True, "pets": True}),
    Correct("fastapi", {"conflict": "detail", "malformed": 404, "ids": "spread"}, key=UUID_KEY),
    Correct("node", {"again": 410, "againBody": "html", "conflict": "none", "malformed": 404, "close": True}),
    Correct("node", {"again": 422, "cancelled": "listed", "fields": "extra", "malformed": 422, "base": "/api/shop"}),
    Correct("node", {"conflict": "html", "ids": "random", "early": True}, key=JWT_KEY, recommended=("ERR-5",)),
    Correct("node", {"gzip": True, "ids": "negative", "pets": True, "keepOnTeardown": True}, key="a7Xk2q"),
    Correct(
        "node",
        {"noise": 5, "oddOrders": True, "shuffle": True, "exactIds": False, "empties": False, "unknownQuery": 400},
        key="Zm9v+YmFy/==~.-_x9",
        excluded=("LIST-7", "LIST-8"),
    ),
]

WRONG = [
    Wrong("fastapi", "key-stripped-of-punctuation", "AUTH-3", key=UUID_KEY),
    Wrong("node", "key-jwt-unsigned", "AUTH-3", key=JWT_KEY),
    Wrong("fastapi", "key-compared-as-text", "AUTH-4"),
    Wrong("node", "work-before-auth", "AUTH-5"),
    Wrong("node", "kept-alive-trust", "AUTH-6"),
    Wrong("fastapi", "decimal-quantity", "LIST-11", required=False),
    Wrong("node", "number-json", "LIST-8", also=("LIST-2",)),
    Wrong("fastapi", "reading-ships", "LIST-9"),
    Wrong("fastapi", "forgets-to-commit", "CANCEL-1", also=("CANCEL-6",)),
    Wrong("node", "204-with-body", "CANCEL-2"),
    Wrong("fastapi", "race", "CANCEL-7"),
    Wrong("node", "cancels-pet", "CANCEL-8"),
    Wrong("node", "parse-int", "CANCEL-9", also=("CANCEL-1",)),
    Wrong("fastapi", "framework-404", "ERR-1"),
    Wrong("node", "drops", "HTTP-2"),
    Wrong("node", "pets-open", "PET-1"),
]
