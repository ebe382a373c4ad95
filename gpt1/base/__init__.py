"""What all rooms stand on: errors, files, locks, the machine."""
