"""What trained models say: texts that go on, probabilities of continuations, answers to tasks."""
