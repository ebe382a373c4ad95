"""What MLflow runs to serve a task model: it executes a copy of this file."""

from pathlib import Path
from typing import Any

from mlflow.exceptions import MlflowException
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel

from gpt1.base.errors import UserError
from gpt1.inference.saved import example_of, load_model


class ServedModel(PythonModel):  # type: ignore[misc]
    """A fine-tuned model as MLflow's python_function."""

    def load_context(self, context: Any) -> None:
        """Load weights and vocabulary."""
        files = context.artifacts
        self.model = load_model(Path(files["weights"]), Path(files["vocabulary"]))

    def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]  # MLflow would take hints for a signature
        """Answer each row of a table. Raises MlflowException for wrong fields."""
        rows = model_input.to_dict("records") if hasattr(model_input, "to_dict") else model_input
        try:
            examples = [
                example_of(self.model.task, row, f"row {number}") for number, row in enumerate(rows)
            ]
        except UserError as error:
            raise MlflowException.invalid_parameter_value(str(error)) from None
        return [self.model.answer(example) for example in examples]


set_model(ServedModel())
