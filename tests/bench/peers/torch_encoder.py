"""torch as a peer in a forward pass: nn.TransformerEncoder's fast path, and the same model written with its functions."""
import encoder
import peer
import torch
from torch.nn.functional import gelu, layer_norm, linear, scaled_dot_product_attention

torch.set_num_threads(1)
torch.set_num_interop_threads(1)
WEIGHTS = {name: torch.from_numpy(numbers.T.copy() if name.split(".")[-1] == "weight" else numbers)
           for name, numbers in encoder.weights().items()}
BLOCKS = [{name.split(".", 1)[1]: numbers for name, numbers in WEIGHTS.items() if name.startswith(f"{layer}.")}
          for layer in range(encoder.LAYERS)]


def norm(x, weights, name):
    return layer_norm(x, (encoder.WIDTH,), weights[f"{name}.weight"], weights[f"{name}.bias"], encoder.EPSILON)


def project(x, weights, name):
    return linear(x, weights[f"{name}.weight"], weights[f"{name}.bias"])


def embedded(tokens):
    return norm(WEIGHTS["words"][tokens] + WEIGHTS["positions"][: tokens.shape[1]], WEIGHTS, "norm")


def block(x, weights):
    batch, length, width = x.shape
    packed = project(x, weights, "packed").view(batch, length, 3, encoder.HEADS, encoder.HEAD)
    query, key, value = packed.permute(2, 0, 3, 1, 4).unbind(0)
    context = scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(batch, length, width)
    x = norm(x + project(context, weights, "out"), weights, "norm1")
    return norm(x + project(gelu(project(x, weights, "up")), weights, "down"), weights, "norm2")


def module():
    layer = torch.nn.TransformerEncoderLayer(encoder.WIDTH, encoder.HEADS, encoder.INNER, activation="gelu",
                                             layer_norm_eps=encoder.EPSILON, batch_first=True)
    return torch.nn.TransformerEncoder(layer, encoder.LAYERS).eval()


def ways(length, batch):
    tokens, stack = torch.from_numpy(encoder.tokens(length, batch)), module()

    def as_module():
        with torch.inference_mode():
            return stack(embedded(tokens))

    def as_functions():
        with torch.inference_mode():
            x = embedded(tokens)
            for weights in BLOCKS:
                x = block(x, weights)
            return x

    return [("nn.TransformerEncoder", as_module), ("functions", as_functions)]


peer.serve(f"torch {torch.__version__}", ways)
