"""Text: books in, token ids out (paper, section 4.1). No torch."""
