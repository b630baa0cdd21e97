"""What the user says, read and checked: configuration file, environment, options, waivers. Errors say how to fix
them."""
