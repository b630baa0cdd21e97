"""The only way to a service: what may be sent (guard), sending it (client, wire), and what came of it (evidence)."""
