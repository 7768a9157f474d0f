"""Client for the attnd attention daemon: numpy arrays in and out.

>>> import attnd
>>> with attnd.Client("http://127.0.0.1:8080") as client:  # doctest: +SKIP
...     result = client.attention([[1, 0], [0, 1]], value=[[1, 2], [3, 4]])
...     result.context, result.weights

The functions of :mod:`attnd.torch_style` take torch's argument names and mask polarity.
"""

from attnd.client import Client
from attnd.errors import (
    AttndError,
    ConnectionError,
    DeadlineError,
    OverloadedError,
    ProtocolError,
    RequestError,
    TimeoutError,
)
from attnd.options import Projections, SomeWeights
from attnd.results import Attention, Forward, Shape, TopLogits, TopWeights
from attnd.transport import Retries
from attnd.version import __version__

__all__ = [
    "Attention",
    "AttndError",
    "Client",
    "ConnectionError",
    "DeadlineError",
    "Forward",
    "OverloadedError",
    "Projections",
    "ProtocolError",
    "RequestError",
    "Retries",
    "Shape",
    "SomeWeights",
    "TimeoutError",
    "TopLogits",
    "TopWeights",
    "__version__",
]
