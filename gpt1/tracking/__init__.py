"""What runs leave behind, as logs and results, and how MLflow is told of it."""
