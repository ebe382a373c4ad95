"""What trained models say: continued texts, zero-shot answers, answers to tasks."""
