"""The network of the paper (section 3.1 and 4.1) and its weights as files."""
