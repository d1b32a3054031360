"""Run a Prometheus on this machine that scrapes a shop's processes, as the one in the cluster does its pods."""

import json
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
import pytest

from e2e.system.cluster_prometheus import shop_rules
from tests.support.network import free_port
from tests.support.processes import RunningCommand
from tests.support.waiting import until


class ProcessPrometheus:
    """Be that Prometheus. A context manager: entering starts it."""

    def __init__(self, directory: Path, *, namespace: str, release: str) -> None:
        """Keep its files in the directory; the labels are given to every series."""
        program = shutil.which("prometheus")
        if program is None:
            pytest.skip("needs prometheus on PATH: Debian's package prometheus")
        self._program = program
        self._directory = directory
        self._scope = {"namespace": namespace, "release": release}
        self._targets: dict[str, dict[str, object]] = {}
        self._address = ""
        self._running: RunningCommand | None = None

    def __enter__(self) -> Self:
        rules = json.dumps({"groups": shop_rules(self._scope["namespace"])})
        (self._directory / "rules.json").write_text(rules, encoding="utf-8")
        config = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(self._directory / "rules.json")],
            "scrape_configs": [
                {
                    "job_name": "shop",
                    "file_sd_configs": [{"files": [str(self._directory / "targets.json")], "refresh_interval": "1s"}],
                }
            ],
        }
        (self._directory / "prometheus.json").write_text(json.dumps(config), encoding="utf-8")
        self._address = f"127.0.0.1:{free_port()}"
        command = [
            self._program,
            f"--config.file={self._directory}/prometheus.json",
            f"--storage.tsdb.path={self._directory}/data",
            f"--web.listen-address={self._address}",
        ]
        self._running = RunningCommand.start(command, env={}, log_path=self._directory / "prometheus.log")
        until(self._answers, deadline_seconds=30, every_seconds=0.1, message="Prometheus is ready")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._running is not None:
            self._running.destroy()

    def url(self) -> str:
        """Return where it answers."""
        return f"http://{self._address}"

    def add(self, name: str, *, component: str, address: str) -> None:
        """Scrape one process more."""
        labels = {**self._scope, "component": component, "pod": name}
        self._targets[name] = {"targets": [address], "labels": labels}
        self._write()

    def remove(self, name: str) -> None:
        """Scrape a process no more."""
        del self._targets[name]
        self._write()

    def _write(self) -> None:
        # At once, so that Prometheus never reads half a file.
        written = self._directory / "targets.json.new"
        written.write_text(json.dumps(list(self._targets.values())), encoding="utf-8")
        written.replace(self._directory / "targets.json")

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url()}/-/ready", timeout=5).status_code == 200
        except httpx.HTTPError:
            return False
