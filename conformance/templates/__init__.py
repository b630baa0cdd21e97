"""The files that `init` writes: a commented targets.toml and an example state provider."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from conformance.target import ConfigError

NAMES = ("targets.toml", "state_provider.py")


def write(*, force: bool = False) -> int:
    """Write the templates into the current folder and return 0. Raises ConfigError where one is there already."""
    there = [name for name in NAMES if Path(name).exists()]
    if there and not force:
        raise ConfigError(f"{there[0]} is here already; remove it, or use --force to replace it")
    for name in NAMES:
        path = Path(name)
        try:
            path.write_bytes(files(__package__).joinpath(name).read_bytes())
        except OSError as error:
            raise ConfigError(f"{name}: cannot be written here ({error.strerror})") from None
        print(f"wrote {name}")
    Path("state_provider.py").chmod(0o755)
    print(
        "Next: fill in targets.toml, have state_provider.py place orders in your store, then\n"
        "  store-orders-conformance doctor staging\n"
        "  store-orders-conformance run staging"
    )
    return 0
