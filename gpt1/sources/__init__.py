"""Where official files come from, how they are found and unpacked."""
