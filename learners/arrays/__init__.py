"""What the learners are made of: tables of counts, seeds, ties, exact shares, array types."""
