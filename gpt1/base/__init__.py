"""The ground of all rooms: errors, files, cores."""
