"""What a call gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating[Any]]


class TopWeights(NamedTuple):
    """The largest weights of each row, largest first, ties to the lower index; excluded keys count as 0.

    Attributes:
        indices: int64 key indices, [heads, queries, k] or [batch, heads, queries, k].
        values: the weights there, of the same shape.
    """

    indices: NDArray[np.int64]
    values: FloatArray


class Shape(NamedTuple):
    """What the daemon made of the request's shapes; `keys` counts past keys."""

    batch: int
    heads: int
    kv_heads: int
    queries: int
    keys: int
    head_width: int
    value_width: int


StageArray = FloatArray | TopWeights


@dataclass(frozen=True, eq=False)
class Attention:
    """The result of one attention call. H, Lq, Lk, D: heads, queries, keys, width of a head; B: sequences.

    For one sequence (a query of rank 2) there is no B dimension anywhere.

    Attributes:
        context: [Lq, width], [B, Lq, width] or [B, H, Lq, value width]: the rank of the query.
        weights: [B, H, Lq, Lk], or [B, Lq, Lk] for the mean over heads; None where not asked for.
        top_weights: with ``{"top_k": k}``, in place of `weights`; else None.
        stages: what ``{"stage": ...}`` asked for, by stage name: arrays as `weights`, or TopWeights.
        statistics: ``entropy``, ``logsumexp`` and ``max`` asked for, each [B, H, Lq]. Entropy is in nats.
        projected: ``query`` [B, H, Lq, D], ``key`` and ``value`` [B, Hkv, Lk, ...] as they enter the scores.
        present: ``key`` and ``value`` to be sent as `past_key` and `past_value` next time, [B, Hkv, Lk, ...].
        shape: the sizes the daemon worked with.
        timing: milliseconds by stage (read, parse, queue, compute, format), from Server-Timing.
        batch_size: sequences in the call that computed this, other clients' included; None where unknown.
        request_id: the request's id, as in the daemon's log; None where unknown.
    """

    context: FloatArray
    shape: Shape
    weights: FloatArray | None = None
    top_weights: TopWeights | None = None
    stages: Mapping[str, StageArray] = field(default_factory=dict)
    statistics: Mapping[str, FloatArray] = field(default_factory=dict)
    projected: Mapping[str, FloatArray] = field(default_factory=dict)
    present: Mapping[str, FloatArray] = field(default_factory=dict)
    timing: Mapping[str, float] = field(default_factory=dict)
    batch_size: int | None = None
    request_id: str | None = None


class TopLogits(NamedTuple):
    """The largest logits of the last position, largest first, ties to the lower token.

    Attributes:
        indices: int64 tokens, [k] or [batch, k].
        values: their logits, of the same shape.
    """

    indices: NDArray[np.int64]
    values: FloatArray


IntArray = NDArray[np.int64]
Rows = FloatArray | list[FloatArray]
Top = TopWeights | list[TopWeights]
Words = list[str | None] | list[list[str | None]]
ByLayer = Mapping[int, Rows]


@dataclass(frozen=True, eq=False)
class Forward:
    """The result of one forward call; what was not asked for is None, or empty.

    Shapes are those of one sequence: L positions, E width, H heads, V vocabulary. A batch has B before; where its
    sequences differ in length, and so a result in shape, it is a list by sequence.

    A model of an encoder and a decoder has kinds: there a mapping from ``"encoder"``, ``"decoder"`` and, for attention,
    ``"cross"`` stands in the place of what is said here of `hidden`, `hidden_all`, `weights`, `rollout` and of each
    statistic. By layer means a mapping from the layer's number.

    Attributes:
        tokens: int64 [L], as sent or as the tokenizer made them of the text; None where embeddings were sent.
        token_strings: the texts of the tokens, lists by sequence for a batch; None where the model has no tokenizer.
        token_offsets: of text, int64 [L, 2]: start and end of each token in bytes of its text in UTF-8.
        decoder_tokens: likewise, as the two that follow.
        decoder_token_strings: likewise.
        decoder_token_offsets: likewise.
        hidden: [L, E], the last hidden states, after the final norm.
        hidden_all: by number, [L, E]: 0 the embedded input, then what each block gives; the last is `hidden`.
        weights: by layer, [H, L, L]; with `top_k` a :class:`TopWeights` of [H, L, k].
        statistics: by name, by layer, [H, L].
        rollout: [L, L].
        pooled: [E].
        logits: [V], of the last position.
        logits_all: [L, V].
        top_logits: the largest `logits`.
        timing: milliseconds by stage (read, parse, queue, compute, format), from Server-Timing.
        batch_size: sequences in the largest call that computed this, other clients' included; None where unknown.
        request_id: the request's id, as in the daemon's log; None where unknown.
    """

    tokens: IntArray | list[IntArray] | None = None
    token_strings: Words | None = None
    token_offsets: IntArray | list[IntArray] | None = None
    decoder_tokens: IntArray | list[IntArray] | None = None
    decoder_token_strings: Words | None = None
    decoder_token_offsets: IntArray | list[IntArray] | None = None
    hidden: Rows | Mapping[str, Rows] | None = None
    hidden_all: ByLayer | Mapping[str, ByLayer] = field(default_factory=dict)
    weights: Mapping[int, Rows | Top] | Mapping[str, Mapping[int, Rows | Top]] = field(default_factory=dict)
    statistics: Mapping[str, ByLayer | Mapping[str, ByLayer]] = field(default_factory=dict)
    rollout: Rows | Mapping[str, Rows] | None = None
    pooled: FloatArray | None = None
    logits: FloatArray | None = None
    logits_all: Rows | None = None
    top_logits: TopLogits | None = None
    timing: Mapping[str, float] = field(default_factory=dict)
    batch_size: int | None = None
    request_id: str | None = None
