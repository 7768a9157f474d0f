"""The types of a call's options; what they mean is said at :class:`attnd.Client`'s methods."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict

from numpy.typing import ArrayLike

Layout = Literal["in_out", "out_in"]
Positions = Literal["none", "sinusoidal", "rope", "rope_interleaved", "alibi"]
Causal = bool | Literal["top_left", "bottom_right"] | int | Sequence[int]
Stage = Literal["scores", "capped", "masked", "softmax"]
Statistic = Literal["entropy", "logsumexp", "max"]
OutputDtype = Literal["float32", "float16", "bfloat16", "float64"]
LayerKind = Literal["self", "cross"]
Precision = int | Literal["shortest"]
Output = Literal["hidden", "hidden_all", "weights", "logits", "logits_all", "pooled"]
Pooling = Literal["mean", "cls", "last"]
Ablation = tuple[int, int] | tuple[Literal["encoder", "decoder", "cross"], int, int]
Tokens = ArrayLike | Sequence[Sequence[int]]


class Projections(TypedDict, total=False):
    """Matrices and biases applied before and after the heads; what is left out is the identity.

    With E the width of an input, W the projected width and layout ``in_out``: query, key, value [E, W] and their
    biases [W]; output [heads * value width, any] with a bias of its last dimension. ``out_in`` is transposed.
    """

    query: ArrayLike
    key: ArrayLike
    value: ArrayLike
    output: ArrayLike
    query_bias: ArrayLike
    key_bias: ArrayLike
    value_bias: ArrayLike
    output_bias: ArrayLike


class SomeWeights(TypedDict, total=False):
    """Which weights come back.

    Attributes:
        heads: these heads only; negative ones count from the end.
        queries: these queries only; negative ones count from the end.
        top_k: the k largest of each row, as :class:`attnd.TopWeights`.
        stage: a stage of the scores, or several, in place of the weights.
    """

    heads: Sequence[int]
    queries: Sequence[int]
    top_k: int
    stage: Stage | Sequence[Stage]


Weights = bool | Literal["mean"] | SomeWeights
