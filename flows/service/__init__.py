"""The parts of `make serve`: where they answer, how they are started and watched, how they end."""
