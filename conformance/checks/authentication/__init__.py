"""AUTH: bearer authentication on both operations (specification, sections 5 and 7)."""
