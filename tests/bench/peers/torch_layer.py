"""torch as a peer: nn.MultiheadAttention, and the same layer written with its functions."""
import peer
import torch
from torch.nn.functional import linear, scaled_dot_product_attention

torch.set_num_threads(1)
torch.set_num_interop_threads(1)
IN, IN_BIAS, OUT, OUT_BIAS = (torch.from_numpy(numbers.T.copy()) for numbers in peer.layer_weights())


def module():
    layer = torch.nn.MultiheadAttention(peer.WIDTH, peer.HEADS, batch_first=True).eval()
    with torch.no_grad():
        for to, values in ((layer.in_proj_weight, IN), (layer.in_proj_bias, IN_BIAS),
                           (layer.out_proj.weight, OUT), (layer.out_proj.bias, OUT_BIAS)):
            to.copy_(values)
    return layer


def ways(length, weights):
    x, layer = torch.from_numpy(peer.sequence(length)), module()

    def as_module():
        with torch.inference_mode():
            return layer(x, x, x, need_weights=bool(weights), average_attn_weights=False)

    def split():
        packed = linear(x, IN, IN_BIAS).view(length, 3, peer.HEADS, peer.HEAD)
        return packed.permute(1, 2, 0, 3).unbind(0)

    def join(context):
        return linear(context.transpose(0, 1).reshape(1, length, peer.WIDTH), OUT, OUT_BIAS)

    def with_weights():
        with torch.inference_mode():
            query, key, value = split()
            found = torch.baddbmm(query.new_empty(()).expand(peer.HEADS, length, length), query, key.transpose(1, 2), beta=0,
                                  alpha=peer.HEAD ** -0.5).softmax(-1)
            return join(found @ value), found

    def without_weights():
        with torch.inference_mode():
            query, key, value = split()
            return join(scaled_dot_product_attention(query[None], key[None], value[None])[0])

    return [("nn.MultiheadAttention", as_module),
            ("bmm, softmax, bmm", with_weights) if weights else ("scaled_dot_product_attention", without_weights)]


peer.serve(f"torch {torch.__version__}", ways)
