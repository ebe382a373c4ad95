"""What everything stands on: errors, files, cores."""
