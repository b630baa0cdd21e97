"""What is judged on every answer of a run, whichever check it was asked for, and what all answers together say."""
