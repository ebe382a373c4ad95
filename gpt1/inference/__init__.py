"""What trained models say: continued texts, probabilities of continuations, answers to tasks."""
