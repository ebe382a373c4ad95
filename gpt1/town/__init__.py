"""A made-up town's books and twelve tasks: the default data."""
