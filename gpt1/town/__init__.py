"""The default data: a made-up town's books, and its twelve tasks in the official file formats."""
