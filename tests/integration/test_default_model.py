"""The default model is what its script makes, byte for byte."""
import subprocess
import sys
from pathlib import Path

import pytest

MODELS = Path(__file__).resolve().parents[2] / "config" / "models"


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_the_default_model_is_what_its_script_makes(tmp_path, name):
    made = tmp_path / "made"
    subprocess.run([sys.executable, "-I", MODELS / "make_tiny_mha.py", made], check=True)
    assert sorted(p.name for p in made.iterdir()) == ["config.json", "model.safetensors"]
    assert (made / name).read_bytes() == (MODELS / "tiny-mha" / name).read_bytes()
