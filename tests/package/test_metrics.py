"""promtool finds nothing to object to in /metrics of a daemon that has worked."""
import shutil
import subprocess

import pytest
from daemon import ROOT, Daemon


@pytest.mark.skipif(shutil.which("promtool") is None, reason="prometheus is not installed")
def test_promtool_accepts_the_metrics():
    with Daemon("--models", ROOT / "config/models") as running:
        for length in (1, 3, 64):
            assert running.attend(query=[[0.5, 1.0]] * length).status == 200
        assert running.attend(query="no").status == 400
        metrics = running.get("/metrics").body
    done = subprocess.run(["promtool", "check", "metrics"], input=metrics, capture_output=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, done.stderr.decode()
