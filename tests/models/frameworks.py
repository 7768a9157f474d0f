"""What tests against torch and transformers need, and how they say that it is not there."""
import importlib.util

import pytest


def needed(*modules):
    """A mark that skips tests where one of the modules is not installed, and whether all are."""
    missing = [name for name in modules if importlib.util.find_spec(name) is None]
    reason = f"{', '.join(missing)} not installed: PYTHON with tests/models/requirements.txt has it"
    return pytest.mark.skipif(bool(missing), reason=reason), not missing
