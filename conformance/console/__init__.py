"""Where commands print: the standard streams, the console on top of them, the progress of long work."""
