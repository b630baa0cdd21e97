"""`python -m conformance`: the same as `store-orders-conformance`."""

import sys

from conformance.cli import main

sys.exit(main())
