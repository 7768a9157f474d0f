"""POST /v1/attention in float64 by the contract: the reply that the fields of a request should get."""
import numpy as np

LOWEST = -3.4028235e38  # as text has it


def sinusoid(length, width, offset):
    """[length, width]: columns 2i and 2i+1 are sin and cos of position / 10000^(2i/width)."""
    position, column = np.arange(length)[:, None] + offset, np.arange(width)[None, :]
    angle = position / 10000.0 ** (column // 2 * 2 / width)
    return np.where(column % 2 == 0, np.sin(angle), np.cos(angle))


def rotate(x, offset, theta, interleaved):
    """RoPE of [..., L, D]: pairs (j, j + D/2), or (2j, 2j + 1)."""
    half = x.shape[-1] // 2
    angle = (np.arange(x.shape[-2]) + offset)[:, None] * theta ** (-2.0 * np.arange(half) / x.shape[-1])
    cos, sin = np.cos(angle), np.sin(angle)
    a, b = (x[..., 0::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    out = np.empty_like(x)
    first, second = (np.s_[..., 0::2], np.s_[..., 1::2]) if interleaved else (np.s_[..., :half], np.s_[..., half:])
    out[first], out[second] = a * cos - b * sin, b * cos + a * sin
    return out


def slopes(heads):
    """ALiBi's: 2^(-8h/H) for a power of two; else those of the power below, then every other one of twice that."""
    below = 1 << (heads.bit_length() - 1)
    first = [2.0 ** (-8.0 * (h + 1) / below) for h in range(below)]
    more = [2.0 ** (-4.0 * (h + 1) / below) for h in range(0, 2 * (heads - below), 2)]
    return np.array(first + more)


def project(x, fields, name):
    matrices = fields.get("projections", {})
    if name in matrices:
        matrix = np.asarray(matrices[name], np.float64)
        x = x @ (matrix.T if fields.get("projection_layout") == "out_in" else matrix)
        x = x + np.asarray(matrices.get(name + "_bias", 0.0), np.float64)
    return x


def split(x, heads):
    """[B, L, heads * D] to [B, heads, L, D]."""
    return np.swapaxes(x.reshape(*x.shape[:2], heads, x.shape[2] // heads), 1, 2)


def inputs(fields):
    """Query, key and value as they enter the scores, [B, heads, L, D], the past included; and the length of past."""
    query = np.asarray(fields["query"] if "query" in fields else fields["embeddings"], np.float64)
    key = np.asarray(fields.get("key", query), np.float64)
    value = np.asarray(fields.get("value", key), np.float64)
    heads, positions = fields.get("heads", 1), fields.get("positions", "none")
    past = np.shape(fields["past_key"])[-2] if "past_key" in fields else 0
    offset = fields.get("position_offset", past)
    parts = [x[None] if query.ndim == 2 else x for x in (query, key, value)]
    if query.ndim < 4:
        if positions == "sinusoidal":
            parts = [x + sinusoid(x.shape[1], x.shape[2], offset) for x in parts]
        parts = [project(x, fields, name) for x, name in zip(parts, ("query", "key", "value"))]
        parts = [split(x, n) for x, n in zip(parts, (heads, *[fields.get("kv_heads", heads)] * 2))]
    if positions.startswith("rope"):
        for i in (0, 1):
            parts[i] = rotate(parts[i], offset, fields.get("rope_theta", 10000.0), positions == "rope_interleaved")
    for i, name in ((1, "past_key"), (2, "past_value")):
        if name in fields:
            cached = np.asarray(fields[name], np.float64).reshape(*parts[i].shape[:2], past, parts[i].shape[3])
            parts[i] = np.concatenate([cached, parts[i]], axis=2)
    return parts, past


def diagonal(fields, batch, queries, keys):
    """[B, 1, Lq, 1]: i', the aligned place of each query among the keys."""
    causal = fields.get("causal", False)
    if causal is True or causal is False or causal == "bottom_right":
        shift = np.full(batch, keys - queries)
    elif causal == "top_left":
        shift = np.zeros(batch, int)
    else:
        shift = np.broadcast_to(np.asarray(causal), (batch,))
    return np.arange(queries)[None, None, :, None] + shift[:, None, None, None]


def allowed(fields, batch, heads, queries, keys):
    """[B, H, Lq, Lk] booleans: every mask that there is, by AND."""
    at, j = diagonal(fields, batch, queries, keys), np.arange(keys)
    ok = np.ones((batch, heads, queries, keys), bool)
    causal = fields.get("causal", False)
    if causal is not False:
        ok = ok & (j <= at)
    left, right = fields.get("window", (-1, -1))
    if left >= 0:
        ok = ok & (j >= at - left)
    if right >= 0:
        ok = ok & (j <= at + right)
    if "key_lengths" in fields:
        ok = ok & (j < np.broadcast_to(fields["key_lengths"], (batch,))[:, None, None, None])
    if "mask" in fields:
        ok = ok & np.asarray(fields["mask"], bool)
    return ok if "bias" not in fields else ok & (np.asarray(fields["bias"]) > -np.inf)


def stages(fields, query, key):
    """scores, capped and masked, [B, H, Lq, Lk]; -inf where a key is excluded."""
    key = np.repeat(key, query.shape[1] // key.shape[1], axis=1)
    scores = query @ np.swapaxes(key, 2, 3) * fields.get("scale", 1 / np.sqrt(query.shape[3]))
    cap = fields.get("softcap")
    capped = cap * np.tanh(scores / cap) if cap else scores
    bias = np.asarray(fields.get("bias", 0.0), np.float64)
    masked = capped + np.where(np.isfinite(bias), bias, 0)
    batch, heads, queries, keys = scores.shape
    if fields.get("positions") == "alibi":
        masked = masked - slopes(heads)[:, None, None] * np.abs(diagonal(fields, *np.take(scores.shape, [0, 2, 3]))
                                                                - np.arange(keys))
    return scores, capped, np.where(allowed(fields, batch, heads, queries, keys), masked, -np.inf)


def softmax(masked, sink):
    """Weights, logsumexp (sink included) and max of the rows; a row without a key has zeros and -inf."""
    top = masked.max(-1, keepdims=True, initial=-np.inf)
    high = np.where(np.isfinite(top), np.maximum(top, sink), 0)
    e = np.exp(masked - high)
    total = e.sum(-1, keepdims=True) + np.exp(sink - high)
    empty = ~np.isfinite(top)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.where(empty, 0, e / total)
        logsumexp = np.where(empty, -np.inf, high + np.log(total))
    return weights, logsumexp[..., 0], top[..., 0]


def narrow(x, form, one):
    """The heads and queries that the weights object picks; without the batch for one sequence."""
    if isinstance(form, dict):
        x = x[:, form["heads"]] if "heads" in form else x
        x = x[:, :, form["queries"]] if "queries" in form else x
    return x[0] if one else x


def top(weights, k):
    order = np.argsort(-weights, axis=-1, kind="stable")[..., :k]
    return {"indices": order, "values": np.take_along_axis(weights, order, -1)}


def weights_of(fields, found, one):
    """The members `weights` and `stages` of the reply."""
    form = fields.get("weights", True)
    if form is False:
        return {}
    if form == "mean":
        return {"weights": found["softmax"].mean(1)[0] if one else found["softmax"].mean(1)}
    narrowed = {name: narrow(x, form, one) for name, x in found.items()}
    if isinstance(form, dict) and "top_k" in form:
        narrowed["softmax"] = top(narrowed["softmax"], form["top_k"])
    if not isinstance(form, dict) or "stage" not in form:
        return {"weights": narrowed["softmax"]}
    names = [form["stage"]] if isinstance(form["stage"], str) else form["stage"]
    return {"stages": {name: narrowed[name] for name in names}}


def answer(fields):
    """The reply to the fields of a request (tensors as arrays), as nested dicts of float64 arrays."""
    (query, key, value), _ = inputs(fields)
    rank = np.ndim(fields["query"] if "query" in fields else fields["embeddings"])
    one, groups = rank == 2, query.shape[1] // key.shape[1]
    found = dict(zip(("scores", "capped", "masked"), stages(fields, query, key)))
    sink = np.asarray(fields.get("sink", -np.inf), np.float64).reshape(-1, 1, 1)
    found["softmax"], logsumexp, most = softmax(found["masked"], sink)
    seen = np.where((found["softmax"] > 0).any((1, 2))[:, None, :, None], value, 0)
    context = found["softmax"] @ np.repeat(seen, groups, axis=1)
    if rank < 4:
        context = project(np.swapaxes(context, 1, 2).reshape(len(context), query.shape[2], -1), fields, "output")
    with np.errstate(divide="ignore", invalid="ignore"):
        log = np.where(found["softmax"] > 0, np.log(found["softmax"]), 0)
    statistics = {"entropy": -(found["softmax"] * log).sum(-1), "logsumexp": logsumexp, "max": most}
    reply = {"context": context[0] if one else context, **weights_of(fields, found, one)}
    if fields.get("statistics"):
        reply["statistics"] = {name: statistics[name][0] if one else statistics[name] for name in fields["statistics"]}
    if fields.get("projected"):
        reply["projected"] = {name: x[0] if one else x
                              for name, x in zip(("query", "key", "value"), (query, key, value))}
    if "past_key" in fields:
        for name, x in (("key", key), ("value", value)):
            cached = np.shape(fields["past_" + name])
            reply["present_" + name] = x.reshape(*cached[:-2], *x.shape[2:])
    return reply
