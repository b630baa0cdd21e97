"""The words of the command line: a module for each, or for those that do nearly the same."""
