"""What a process that runs nothing but logreel leaves out of its imports."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, PathFinder


def import_arrow_without_pandas() -> None:
    """Let pyarrow convert values without importing pandas, until something else in this process imports it.

    Before pyarrow converts the first number or list of Python, it imports pandas, if that is installed, to recognise
    its objects: 0.3 s of CPU time, more than all else takes for a small log. Only for a process of logreel's own: a
    program may expect that pyarrow knows pandas.
    """
    if not {"pandas", "pyarrow"} & sys.modules.keys():
        sys.meta_path.insert(0, _Finder())


class _Finder:
    """Finder that lets pyarrow look for pandas when it has been imported, and again when pandas is imported."""

    def __init__(self) -> None:
        self._waiting = {"pyarrow": self._look_in_vain, "pandas": _look_again}
        self._hides_pandas = False

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Find one of both modules as Python does; return None for others."""
        if name == "pandas" and self._hides_pandas:
            raise ModuleNotFoundError(name, name=name)
        after = self._waiting.pop(name, None)
        spec = PathFinder.find_spec(name) if after else None
        if after is None or spec is None or spec.loader is None:
            return None
        execute = spec.loader.exec_module

        def execute_and_look(module: object) -> None:
            execute(module)  # type: ignore[arg-type]
            after()

        spec.loader.exec_module = execute_and_look  # type: ignore[method-assign]
        return spec

    def _look_in_vain(self) -> None:
        if "pandas" not in sys.modules:
            import pyarrow as pa

            self._hides_pandas = True
            try:
                pa.array([])
            finally:
                self._hides_pandas = False


def _look_again() -> None:
    """Let pyarrow recognise objects of pandas, which a plug-in or a script has imported."""
    if "pyarrow" in sys.modules:
        import pyarrow as pa

        # Other than pa.array, what cannot do without pandas looks for it again.
        pa.nulls(0).to_pandas()
