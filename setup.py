"""The wheel's build step: the files of a project folder (`gpt1 init`), which are this checkout's
own, go with the package. All else stands in pyproject.toml.
"""

import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

sys.path.insert(0, str(Path(__file__).parent))


class WithProjectFiles(build_py):
    """Modules and package data, and the files of a project folder beside them."""

    def run(self) -> None:
        """Build them. Of a set-up in place, which reads the checkout's, nothing is copied."""
        from gpt1.pipeline.template import files

        super().run()
        for name, path in ({} if self.editable_mode else files()).items():
            target = Path(self.build_lib, "gpt1/project", name)
            target.parent.mkdir(parents=True, exist_ok=True)
            self.copy_file(str(path), str(target))


setup(cmdclass={"build_py": WithProjectFiles})
