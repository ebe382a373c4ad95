"""Files that an exported folder takes along."""
