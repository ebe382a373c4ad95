"""What MLflow runs to serve a task model: it executes a copy of this file ("models from code");
nothing of ours imports it.
"""

import threading
from typing import Any

from mlflow.exceptions import MlflowException
from mlflow.models import set_model
from mlflow.pyfunc.model import PythonModel

from gpt1.base.errors import UserError
from gpt1.inference.fields import FIELDS, choices_of, example_from_record, texts_of
from gpt1.inference.saved import load_model
from gpt1.tasks.rows import Example


class ServedModel(PythonModel):
    """A fine-tuned model as MLflow's python_function: rows with first, second and choices in, an
    answer for each out.
    """

    def load_context(self, context: Any) -> None:
        """Load weights and vocabulary, and answer once, so that the first request waits for
        nothing.
        """
        from pathlib import Path

        self.model = load_model(
            Path(context.artifacts["weights"]), Path(context.artifacts["vocabulary"])
        )
        self.lock = threading.Lock()
        self.model.answer(
            Example(("a",) * texts_of(self.model.task), ("a",) * choices_of(self.model.task))
        )

    def predict(self, context, model_input, params=None):  # type: ignore[no-untyped-def]  # MLflow would take hints for a signature
        """The answers to a table with a row for each example. Raises MlflowException, in one line,
        for fields that the task lacks.
        """
        records = model_input.to_dict("records") if hasattr(model_input, "to_dict") else model_input
        try:
            examples = [
                example_from_record(self.model.task, given(record), f"row {number}")
                for number, record in enumerate(records)
            ]
        except UserError as error:
            raise MlflowException.invalid_parameter_value(str(error)) from None
        with self.lock:
            return [self.model.answer(example).record() for example in examples]


def given(record: dict[str, Any]) -> dict[str, Any]:
    """A row without the cells that a table fills in where a field is absent; the choices as a
    list.
    """
    named = {
        name: value
        for name, value in record.items()
        if name not in FIELDS or isinstance(value, str) or hasattr(value, "__len__")
    }
    return named | (
        {"choices": list(named["choices"])}
        if "choices" in named and not isinstance(named["choices"], str)
        else {}
    )


set_model(ServedModel())
