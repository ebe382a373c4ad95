"""What a fine-tuned model answers: saved weights loaded, a task's fields encoded as in training,
labels and probabilities.
"""
