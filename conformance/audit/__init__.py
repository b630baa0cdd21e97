"""`audit`: whether the evidence of a run bears out what the run states, found by running the same checks on it."""
