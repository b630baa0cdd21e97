"""Orders to work on: the state-provider protocol, the ways to speak it, and what is taken and given back."""
