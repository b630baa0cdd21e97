"""CANCEL: one order, by its id, if it is pending (specification, sections 3 and 4.2)."""
