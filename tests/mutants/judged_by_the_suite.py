"""The one test that judges mutants of the reference server: the suite finds nothing wrong with the service, not even
with what is only recommended. `mutants.py` copies this file beside the mutants."""

import os
import subprocess
import sys
import tempfile

from reference_server.running import Running, build

KEY = "sk-Mutants.Key_2031"


def test_the_suite_finds_nothing() -> None:
    with tempfile.TemporaryDirectory() as folder, Running(build(KEY.encode()), states_port=0) as server:
        asked = f"--base-url {server.base_url} --states-url {server.states_url} --api-key-env MUTANTS_KEY --strict"
        further = f"--budget quick --seed 1 --timeout 30 --report-dir {folder}"
        done = subprocess.run(
            [sys.executable, "-m", "conformance", "run", *asked.split(), *further.split()],
            env={**os.environ, "MUTANTS_KEY": KEY},
            cwd=folder,  # else the mutants would be found where the suite is to be found
            capture_output=True,
            text=True,
        )
    assert done.returncode == 0, done.stdout
