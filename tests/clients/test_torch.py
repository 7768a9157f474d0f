"""torch's own attention and the daemon's agree."""
import attnd
import pytest
from compare_torch import compare
from daemon import Daemon


def test_torch_agrees_on_random_cases():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    with Daemon() as running, attnd.Client(f"http://127.0.0.1:{running.port}", encoding="json") as client:
        found = compare(torch, client, cases=200, seed=1)
    assert all(largest <= bound for largest, bound in found.values()), found
