"""What a run says, in the formats that people and programs read: one pure function for each."""
