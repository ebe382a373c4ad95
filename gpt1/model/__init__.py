"""The network of the paper (sections 3.1 and 4.1) and its weights as files."""
