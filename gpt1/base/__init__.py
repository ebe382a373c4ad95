"""What all packages use: errors, files, locks, the machine."""
