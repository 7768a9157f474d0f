"""The committed checkpoints and vectors are what make_checkpoints.py makes with the frameworks that are installed."""
from pathlib import Path

import pytest
from frameworks import needed

pytestmark, installed = needed("torch", "transformers", "diffusers", "safetensors")
if installed:
    import make_checkpoints
    from safetensors.torch import load_file

HERE = Path(__file__).parent
FOLDERS = sorted(path.parent.name for path in HERE.glob("*/config.json"))
WITHIN = 1e-5


def tensors(folder, pattern):
    return {name: tensor for path in sorted(folder.glob(pattern)) for name, tensor in load_file(path).items()}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_case_is_what_the_generator_makes(case, tmp_path):
    make_checkpoints.make(case, tmp_path)
    assert (tmp_path / case / "config.json").read_text() == (HERE / case / "config.json").read_text()
    for pattern in ("model*.safetensors", "vectors.safetensors"):
        made, kept = tensors(tmp_path / case, pattern), tensors(HERE / case, pattern)
        assert made.keys() == kept.keys()
        for name, tensor in made.items():
            assert tensor.dtype == kept[name].dtype and tensor.shape == kept[name].shape, name
            assert (tensor.double() - kept[name].double()).abs().max() <= WITHIN, name


def test_every_folder_is_a_case_of_the_generator():
    assert FOLDERS == sorted(make_checkpoints.CASES)
