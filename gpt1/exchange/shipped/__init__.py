"""Files that an exported folder takes along; they import nothing of this project."""
