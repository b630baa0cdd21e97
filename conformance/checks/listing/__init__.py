"""LIST: every order, as it is, in one answer (specification, sections 2, 4.1 and 8)."""
