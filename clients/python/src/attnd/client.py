"""The client: one method for each thing the daemon answers."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from numpy.typing import ArrayLike, NDArray

from attnd import bodies, forward_bodies
from attnd.bodies import Encoding
from attnd.errors import DeadlineError, OverloadedError, ProtocolError, RequestError
from attnd.options import (
    Ablation,
    Causal,
    LayerKind,
    Layout,
    Output,
    OutputDtype,
    Pooling,
    Positions,
    Precision,
    Projections,
    Statistic,
    Tokens,
    Weights,
)
from attnd.results import Attention, Forward
from attnd.transport import Reply, Request, Retries, Transport

DEFAULT_URL = "http://127.0.0.1:8080"


class Client:
    """A daemon at a URL. Thread-safe: one client serves any number of threads, each call on a connection of its own.

    Connections are kept open and used again; close the client, or use it in a ``with`` statement, to close them.

    Args:
        url: ``http://host:port``, ``https://host:port``, or ``unix:/path/of/socket``.
        encoding: how tensors travel. ``"safetensors"`` carries float32 bits exactly, any shape, NaN and infinity;
            ``"json"`` is text, which other tools can read. In JSON replies an empty array keeps only the dimensions
            that its nesting shows, and a result that is not finite is an error.
        timeout: seconds a call may take in all, retries included; None: no bound.
        token: the bearer token, where the daemon asks for one.
        retries: what is done about 429 and 503; ``Retries(attempts=1)`` does nothing.
        headers: sent with every request.
        idle_connections: connections kept open for reuse at most.
    """

    def __init__(
        self,
        url: str = DEFAULT_URL,
        *,
        encoding: Encoding = "safetensors",
        timeout: float | None = 60.0,
        token: str | None = None,
        retries: Retries = Retries(),  # noqa: B008 (frozen)
        headers: Mapping[str, str] | None = None,
        idle_connections: int = 8,
    ) -> None:
        if encoding not in bodies.MEDIA_TYPES:
            raise ValueError(f"encoding must be 'safetensors' or 'json', not {encoding!r}")
        self.encoding = encoding
        self.timeout = timeout
        self._transport = Transport(url, retries=retries, idle_connections=idle_connections)
        self._headers = {"User-Agent": "attnd-python", **(headers or {})}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the idle connections. Calls made later open their own and close them."""
        self._transport.close()

    def attention(
        self,
        query: ArrayLike,
        key: ArrayLike | None = None,
        value: ArrayLike | None = None,
        *,
        heads: int | None = None,
        kv_heads: int | None = None,
        projections: Projections | None = None,
        projection_layout: Layout | None = None,
        positions: Positions | None = None,
        rope_theta: float | None = None,
        position_offset: int | None = None,
        mask: ArrayLike | None = None,
        bias: ArrayLike | None = None,
        key_lengths: int | Sequence[int] | None = None,
        causal: Causal | None = None,
        window: tuple[int, int] | None = None,
        scale: float | None = None,
        softcap: float | None = None,
        sink: float | Sequence[float] | None = None,
        past_key: ArrayLike | None = None,
        past_value: ArrayLike | None = None,
        weights: Weights | None = None,
        projected: bool | None = None,
        statistics: Sequence[Statistic] | None = None,
        precision: Precision | None = None,
        output_dtype: OutputDtype | None = None,
        timeout_ms: int | None = None,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Attention:
        """Attention of the given queries over the given keys and values.

        Shapes: B sequences, Lq queries, Lk keys (past ones included), E widths, H query heads, Hkv key heads, D width
        of a head. What is None is not sent, and the daemon's default holds.

        Args:
            query: [Lq, E] one sequence, [B, Lq, E] a batch, or [B, H, Lq, D] heads already split.
            key: [Lk, E] and so on, of the query's rank; default: the query.
            value: [Lk, E] and so on; its width may differ; default: the key.
            heads: heads to split the (projected) width into; default 1.
            kv_heads: heads of keys and values, a divisor of `heads`; default: heads.
            projections: matrices and biases applied before and after the heads; default: none.
            projection_layout: ``"in_out"`` (y = x·W, the default) or ``"out_in"`` (y = x·Wᵀ, as torch stores it).
            positions: ``"none"`` (default), ``"sinusoidal"``, ``"rope"``, ``"rope_interleaved"`` or ``"alibi"``.
            rope_theta: base of the rotation's wavelengths; default 10000.
            position_offset: position of the first query and the first new key; default: the length of the past.
            mask: booleans, **True = may attend**, rank 2 to 4, broadcast against [B, H, Lq, Lk]. Masks, key lengths,
                causal and window all have to allow a key. A row with no key has zero weights and zero context.
            bias: numbers added to the scores, broadcast likewise; -infinity excludes the key.
            key_lengths: keys of each sequence that are not padding, past included; default: all.
            causal: True (= ``"bottom_right"``, aligned to the last key), ``"top_left"``, an offset, or one a sequence.
            window: (left, right), inclusive distances from the aligned diagonal; -1: unbounded.
            scale: factor of the scores; default 1/sqrt(D).
            softcap: scores become softcap·tanh(scores/softcap) before masking; over 0; default: none.
            sink: logit of a sink that takes weight and has no value, one number or one a head; default: none.
            past_key: [B, Hkv, P, D] keys to put before the new ones; with `past_value`, `present` comes back.
            past_value: [B, Hkv, P, Dv]; P = 0 starts a cache.
            weights: True (default), False, ``"mean"`` (over heads), or a :class:`attnd.SomeWeights`.
            projected: True returns queries, keys and values as they enter the scores.
            statistics: any of ``"entropy"``, ``"logsumexp"``, ``"max"``.
            precision: significant digits of a JSON reply, 1 to 9, or ``"shortest"`` (default, exact).
            output_dtype: of a safetensors reply's float tensors, ``"float32"`` by default. ``"bfloat16"`` halves the
                bytes on the way and arrives as float32 arrays.
            timeout_ms: milliseconds from arrival after which the daemon gives up (sent as X-Timeout-Ms).
            timeout: seconds this call may take in all, in place of the client's.
            request_id: the id to log this request under; default: the daemon makes one.

        Returns:
            The context, the weights, and what else was asked for.

        Raises:
            RequestError: the daemon refused the request; `pointer` names the field.
            OverloadedError: it is full, starting or stopping, after all retries.
            DeadlineError: its deadline passed.
            ConnectionError: no connection, or it broke.
            TimeoutError: the client's timeout passed.
            ProtocolError: the reply could not be understood.
            TypeError: a value that no request can hold.
            ValueError: a ragged array, or a NaN among the options.
        """
        tensors = {"query": query, "key": key, "value": value, "mask": mask, "bias": bias}
        tensors.update(past_key=past_key, past_value=past_value)
        for name, matrix in (projections or {}).items():
            tensors[f"projections.{name}"] = matrix  # type: ignore[assignment]
        fields = {
            "heads": heads,
            "kv_heads": kv_heads,
            "projection_layout": projection_layout,
            "positions": positions,
            "rope_theta": rope_theta,
            "position_offset": position_offset,
            "key_lengths": key_lengths,
            "causal": causal,
            "window": window,
            "scale": scale,
            "softcap": softcap,
            "sink": sink,
            "weights": weights,
            "projected": projected,
            "statistics": statistics,
            "precision": precision,
            "output_dtype": output_dtype,
        }
        return self._attend("/v1/attention", tensors, fields, timeout_ms, timeout, request_id)

    def model_attention(
        self,
        model: str,
        query: ArrayLike,
        key: ArrayLike | None = None,
        value: ArrayLike | None = None,
        *,
        layer: int | None = None,
        kind: LayerKind | None = None,
        position_offset: int | None = None,
        mask: ArrayLike | None = None,
        bias: ArrayLike | None = None,
        key_lengths: int | Sequence[int] | None = None,
        causal: Causal | None = None,
        window: tuple[int, int] | None = None,
        softcap: float | None = None,
        sink: float | Sequence[float] | None = None,
        past_key: ArrayLike | None = None,
        past_value: ArrayLike | None = None,
        weights: Weights | None = None,
        projected: bool | None = None,
        statistics: Sequence[Statistic] | None = None,
        precision: Precision | None = None,
        output_dtype: OutputDtype | None = None,
        timeout_ms: int | None = None,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Attention:
        """One attention layer of a loaded model, with its learned projections.

        The input goes straight to the projections; heads, scale and positions are the model's.

        Args:
            model: its name, as :meth:`models` lists it.
            query: [Lq, E] or [B, Lq, E], E the model's width.
            key: [Lk, E] or [B, Lk, E]; default: the query.
            value: as the key; default: the key.
            layer: counted from 0, in the order data meets them; default 0.
            kind: ``"self"`` (default), or ``"cross"`` where the layer has one.
            position_offset: as :meth:`attention`, like all that follow; causal, window, softcap and sink are the
                model's by default.
            mask: booleans, **True = may attend**, broadcast against [B, H, Lq, Lk].
            bias: numbers added to the scores.
            key_lengths: keys of each sequence that are not padding.
            causal: True, False, an alignment, an offset, or one a sequence.
            window: (left, right).
            softcap: over 0.
            sink: one number or one a head.
            past_key: [B, Hkv, P, D].
            past_value: [B, Hkv, P, Dv].
            weights: True (default), False, ``"mean"``, or a :class:`attnd.SomeWeights`.
            projected: True returns queries, keys and values as they enter the scores.
            statistics: any of ``"entropy"``, ``"logsumexp"``, ``"max"``.
            precision: of a JSON reply.
            output_dtype: of a safetensors reply.
            timeout_ms: the daemon's deadline, in milliseconds.
            timeout: seconds this call may take in all.
            request_id: the id to log this request under.

        Returns:
            The context, the weights, and what else was asked for.

        Raises:
            AttndError: as :meth:`attention`; a model that is not loaded is a RequestError of status 404.
        """
        tensors = {"query": query, "key": key, "value": value, "mask": mask, "bias": bias}
        tensors.update(past_key=past_key, past_value=past_value)
        fields = {
            "layer": layer,
            "kind": kind,
            "position_offset": position_offset,
            "key_lengths": key_lengths,
            "causal": causal,
            "window": window,
            "softcap": softcap,
            "sink": sink,
            "weights": weights,
            "projected": projected,
            "statistics": statistics,
            "precision": precision,
            "output_dtype": output_dtype,
        }
        return self._attend(f"{_model_path(model)}/attention", tensors, fields, timeout_ms, timeout, request_id)

    def forward(
        self,
        model: str,
        tokens: Tokens | None = None,
        *,
        text: str | Sequence[str] | None = None,
        embeddings: ArrayLike | None = None,
        decoder_tokens: Tokens | None = None,
        decoder_text: str | Sequence[str] | None = None,
        decoder_embeddings: ArrayLike | None = None,
        outputs: Output | Sequence[Output] | None = None,
        layers: Sequence[int] | None = None,
        heads: Sequence[int] | None = None,
        queries: Sequence[int] | None = None,
        top_k: int | None = None,
        pooling: Pooling | None = None,
        normalize: bool | None = None,
        ablate: Sequence[Ablation] | None = None,
        rollout: bool | None = None,
        statistics: Sequence[Statistic] | None = None,
        top_logits: int | None = None,
        precision: Precision | None = None,
        output_dtype: OutputDtype | None = None,
        timeout_ms: int | None = None,
        timeout: float | None = None,
        request_id: str | None = None,
    ) -> Forward:
        """The stacks of a loaded model: hidden states, attention weights of every layer, pooled vectors, logits.

        One of `tokens`, `text` and `embeddings` is given; for a model of an encoder and a decoder one of the decoder's
        too, without which only the encoder runs. What is None is not sent, and the daemon's default holds.

        Args:
            model: its name, as :meth:`models` lists it.
            tokens: [L] one sequence or [B, L] a batch of token numbers, or rows that differ in length.
            text: a text or several, for a model with a tokenizer.
            embeddings: [L, E] or [B, L, E] in the place of the tokens' embeddings, before positions.
            decoder_tokens: as `tokens`, for the decoder.
            decoder_text: as `text`.
            decoder_embeddings: as `embeddings`.
            outputs: any of ``"hidden"`` (the default), ``"hidden_all"``, ``"weights"``, ``"logits"`` (of the last
                position), ``"logits_all"``, ``"pooled"``; [] for none of them.
            layers: of weights and statistics, negative ones from the end; default: all.
            heads: of weights; default: all.
            queries: of weights; default: all.
            top_k: the largest weights of each row only.
            pooling: ``"mean"`` (default), ``"cls"`` (the first position) or ``"last"``.
            normalize: whether pooled vectors get length 1.
            ablate: heads whose weights count as zero: (layer, head), or (kind, layer, head) where the model has kinds.
            rollout: True returns the attention rollout of each stack.
            statistics: any of ``"entropy"``, ``"logsumexp"``, ``"max"``, by layer.
            top_logits: so many of the largest logits of the last position.
            precision: of a JSON reply.
            output_dtype: of a safetensors reply.
            timeout_ms: the daemon's deadline, in milliseconds.
            timeout: seconds this call may take in all.
            request_id: the id to log this request under.

        Returns:
            What was asked for, by name.

        Raises:
            AttndError: as :meth:`attention`; a model that is not loaded is a RequestError of status 404.
            TypeError: tokens that are not integers.
        """
        fields: dict[str, Any] = {
            "text": text,
            "decoder_text": decoder_text,
            "outputs": outputs,
            "layers": layers,
            "heads": heads,
            "queries": queries,
            "top_k": top_k,
            "pooling": pooling,
            "normalize": normalize,
            "ablate": ablate,
            "rollout": rollout,
            "statistics": statistics,
            "top_logits": top_logits,
            "precision": precision,
            "output_dtype": output_dtype,
        }
        arrays: dict[str, NDArray[Any]] = {}
        for name, rows in (("tokens", tokens), ("decoder_tokens", decoder_tokens)):
            if rows is not None:
                made = forward_bodies.as_tokens(name, rows)
                if isinstance(made, list):
                    fields[name] = made
                else:
                    arrays[name] = made
        for name, value in (("embeddings", embeddings), ("decoder_embeddings", decoder_embeddings)):
            if value is not None:
                arrays[name] = bodies.as_tensor(name, value)
        reply = self._compute(f"{_model_path(model)}/forward", arrays, fields, timeout_ms, timeout, request_id)
        return forward_bodies.read(reply.media_type, reply.body, **_computed(reply))

    def models(self) -> list[dict[str, Any]]:
        """The loaded models: id, architecture, layers, heads, widths and limits of each."""
        return _data(self._get("/v1/models"))

    def model(self, name: str) -> dict[str, Any]:
        """One loaded model's entry; RequestError of status 404 where it is not loaded."""
        return _object(self._get(_model_path(name)))

    def latency(self) -> list[dict[str, Any]]:
        """Latency against sequence length, in seconds: one entry for each operation, model, heads and width seen."""
        return _data(self._get("/v1/latency"))

    def metrics(self) -> str:
        """The metrics in Prometheus's text format."""
        return self._get("/metrics").body.decode()

    def health(self) -> bool:
        """Whether a request would be served now: False while the daemon starts or drains. Never tried again.

        Raises:
            ConnectionError: nothing listens.
        """
        reply = self._transport.send(Request("GET", "/healthz", self._headers), self.timeout, again=False)
        if reply.status not in (200, 503):
            raise _refusal(reply)
        return reply.status == 200

    def _get(self, path: str) -> Reply:
        return self._send(Request("GET", path, self._headers), None)

    def _send(self, request: Request, timeout: float | None) -> Reply:
        reply = self._transport.send(request, self.timeout if timeout is None else timeout)
        if reply.status != 200:
            raise _refusal(reply)
        return reply

    def _attend(
        self,
        path: str,
        tensors: Mapping[str, ArrayLike | None],
        fields: Mapping[str, Any],
        timeout_ms: int | None,
        timeout: float | None,
        request_id: str | None,
    ) -> Attention:
        arrays = {name: bodies.as_tensor(name, value) for name, value in tensors.items() if value is not None}
        reply = self._compute(path, arrays, fields, timeout_ms, timeout, request_id)
        found, shape = bodies.decode(reply.media_type, reply.body)
        return bodies.attention(found, shape, **_computed(reply))

    def _compute(
        self,
        path: str,
        arrays: Mapping[str, NDArray[Any]],
        fields: Mapping[str, Any],
        timeout_ms: int | None,
        timeout: float | None,
        request_id: str | None,
    ) -> Reply:
        given = {name: value for name, value in fields.items() if value is not None}
        headers = {**self._headers, "Accept": bodies.MEDIA_TYPES[self.encoding]}
        if timeout_ms is not None:
            headers["X-Timeout-Ms"] = str(timeout_ms)
        if request_id is not None:
            headers["X-Request-Id"] = request_id
        body = bodies.encode(self.encoding, arrays, given)
        return self._send(Request("POST", path, headers, body), timeout)


def _computed(reply: Reply) -> dict[str, Any]:
    """What the headers of a computed reply say of it."""
    size = reply.headers.get("x-batch-size", "")
    return {
        "timing": _server_timing(reply.headers.get("server-timing", "")),
        "batch_size": int(size) if size.isdecimal() else None,
        "request_id": reply.headers.get("x-request-id"),
    }


def _model_path(model: str) -> str:
    return f"/v1/models/{quote(model, safe='')}"


def _server_timing(text: str) -> dict[str, float]:
    """Milliseconds by stage."""
    return {name: float(ms) for name, ms in re.findall(r"(\w+)\s*;\s*dur=([0-9.]+(?:[eE][-+]?[0-9]+)?)", text)}


def _object(reply: Reply) -> dict[str, Any]:
    try:
        found = json.loads(reply.body)
    except ValueError as error:
        raise ProtocolError(f"the reply is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ProtocolError("the reply is not an object")
    return found


def _data(reply: Reply) -> list[dict[str, Any]]:
    data = _object(reply).get("data")
    if not isinstance(data, list):
        raise ProtocolError("the reply has no list named data")
    return data


def _refusal(reply: Reply) -> RequestError:
    """The exception that a reply other than 200 stands for."""
    problem: dict[str, Any] = {}
    if reply.media_type == "application/problem+json":
        problem = _object(reply)
    text = bytes(reply.body[:500]).decode(errors="replace").strip()
    known = {name: str(problem[name]) for name in ("code", "title", "pointer") if problem.get(name) is not None}
    detail = str(problem["detail"]) if "detail" in problem else (text if not problem else None)
    request_id = reply.headers.get("x-request-id")
    if reply.status in (429, 503):
        return OverloadedError(
            reply.status, retry_after=reply.retry_after, detail=detail, request_id=request_id, **known
        )
    kind = DeadlineError if reply.status == 504 else RequestError
    return kind(reply.status, detail=detail, request_id=request_id, **known)
