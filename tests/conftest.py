"""What every test shares: Hypothesis' profiles, and a home that is nobody's."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import servers

# A worker is measured, the processes that its tests start are not: a tracer in each of these
# hundreds costs more than a minute, and they run what is measured here too.
if "PYTEST_XDIST_WORKER" in os.environ:
    for _name in ("COVERAGE_PROCESS_CONFIG", "COVERAGE_PROCESS_START"):
        os.environ.pop(_name, None)

# No deadline: the machine is shared, and a slow example is no failure.
_SHARED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", max_examples=40, **_SHARED)
settings.register_profile("ci", max_examples=30, derandomize=True, database=None, **_SHARED)
settings.register_profile("core", max_examples=12, derandomize=True, database=None, **_SHARED)
settings.load_profile(
    os.environ.get("RETAIN_TEST_PROFILE") or ("ci" if os.environ.get("CI") else "default")
)


@pytest.fixture(scope="session", autouse=True)
def _a_home_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """No test, and no process that one starts, reads or writes the developer's own memories."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(home))
        for name in (
            "RETAIN_DIR",
            "RETAIN_STORE",
            "XDG_CONFIG_HOME",
            "XDG_DATA_HOME",
            "XDG_CACHE_HOME",
        ):
            patch.delenv(name, raising=False)
        yield home


@pytest.fixture(scope="session", autouse=True)
def _servers_end_with_the_session() -> Iterator[None]:
    """Those that a test started; the next test that needs one finds it running."""
    yield
    servers.stop_all()
