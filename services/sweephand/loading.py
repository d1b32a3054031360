"""Load the application that `--app module:attribute` names."""

import importlib
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from sweephand.app import App
from sweephand.model.errors import AppError, SweephandError


def load_app(target: str) -> App:
    """Return the application; the current directory is looked in first, as `python -m` does.

    `target` is `module:attribute`; the attribute is an App or a callable without arguments that returns one.

    Raises:
        AppError: the target has another form, the module does not import, or the attribute is missing, fails or is no App.
    """
    module_name, separator, attribute = target.partition(":")
    if not separator or not module_name or not attribute:
        raise AppError(f"--app {target!r} is not module:attribute; for example storefront.app:create_app")
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except SweephandError:
        raise
    except Exception as error:
        raise AppError(_import_problem(module_name, error)) from error
    if not hasattr(module, attribute):
        raise AppError(f"{module.__file__}: has no {attribute}; --app {target} needs an App of that name")
    found = getattr(module, attribute)
    app = _called(found, target) if callable(found) and not isinstance(found, App) else found
    if not isinstance(app, App):
        raise AppError(
            f"{module.__file__}: {attribute} is {type(app).__name__}; it must be a sweephand.App or make one when called"
        )
    return app


def _called(make_app: Callable[[], object], target: str) -> object:
    try:
        return make_app()
    except SweephandError:
        raise
    except Exception as error:
        raise AppError(f"{_last_line(error)}: {target} fails when it is called: {type(error).__name__}: {error}") from error


def _import_problem(module_name: str, error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name and module_name.startswith(error.name):
        return f"--app: no module {module_name} in {Path.cwd()} or the Python path; start where it lies, or install it"
    return f"{_last_line(error)}: {module_name} does not import: {type(error).__name__}: {error}"


def _last_line(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename}:{last.lineno}"
