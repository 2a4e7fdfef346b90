"""What commands print and write: answers, tables, scorecards, progress, head roles."""
