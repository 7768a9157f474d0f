"""Fixtures: a daemon shared by the tests that only ask, and a way to start one of a test's own."""
import pytest
from daemon import Daemon
from reference import write_torch_mha


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A models directory with one torch-style layer `m`, width 16, 4 heads; and its tensors."""
    folder = tmp_path_factory.mktemp("models")
    return folder, write_torch_mha(folder / "m", 16, 4)


@pytest.fixture(scope="session")
def daemon(models):
    with Daemon("--models", models[0], "--workers", "2") as running:
        yield running


@pytest.fixture
def start():
    """Starts daemons with the given flags; each must end well."""
    running = []

    def begin(*args, **kwargs):
        running.append(Daemon(*args, **kwargs))
        return running[-1]

    yield begin
    for one in running:
        one.stop()
