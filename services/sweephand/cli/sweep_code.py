"""Compare the sweeps that the database knows with those of an application's code."""

from sweephand.app import App
from sweephand.loading import load_app
from sweephand.model.errors import NotFoundError
from sweephand.postgres.sweep_views import SweepName, SweepView
from sweephand.sweep import Sweep


class SweepCode:
    """Be the sweeps of one application as its code has them."""

    def __init__(self, app: App) -> None:
        self._app = app

    @classmethod
    def load(cls, target: str) -> "SweepCode":
        """Load the application.

        Raises:
            AppError: it does not load.
        """
        return cls(load_app(target))

    @property
    def app_name(self) -> str:
        """The application's name."""
        return self._app.name

    def sweep(self, path: str) -> Sweep:
        """Return the sweep that `name` or `app/name` means.

        Raises:
            NotFoundError: the application has none of this name.
        """
        app, _, name = path.rpartition("/")
        if app not in {"", self._app.name} or name not in self._app.sweeps:
            known = ", ".join(self._app.sweeps) or "none"
            raise NotFoundError(f"the application {self._app.name} has no sweep {path}; it has {known}")
        return self._app.sweeps[name]

    def unregistered(self, registered: tuple[SweepView, ...]) -> tuple[SweepName, ...]:
        """Return the sweeps that no dispatcher has registered yet."""
        known = {sweep.name for sweep in registered if sweep.app == self._app.name}
        return tuple(SweepName(self._app.name, name) for name in self._app.sweeps if name not in known)

    def is_orphan(self, sweep: SweepView) -> bool:
        """Tell whether a registered sweep is this application's and not in its code."""
        return sweep.app == self._app.name and sweep.name not in self._app.sweeps

    def differences(self, sweep: SweepView) -> tuple[str, ...]:
        """Say what the code has otherwise than the table; a dispatcher of this code registers it when it leads."""
        code = self._app.sweeps.get(sweep.name)
        if sweep.app != self._app.name or code is None:
            return ()
        pairs = (
            ("schedule", sweep.schedule, str(code.policy.schedule)),
            ("kind", sweep.kind, code.job.kind),
            ("queue", sweep.queue, code.job.queue),
            ("limit", str(sweep.limit), str(code.limit)),
            ("scan bound", str(sweep.scan_bound), str(code.scan_bound)),
            ("catch up", sweep.catch_up, str(code.policy.catch_up)),
            ("overlap", sweep.overlap, code.policy.overlap.value),
        )
        return tuple(f"{what}: {here} here, {there} in the code" for what, here, there in pairs if here != there)
