"""Text from a language model: decoding, perplexity, scores against references."""
