"""What the user says, read and checked: configuration file, environment, options, waivers. Errors name the mend."""
