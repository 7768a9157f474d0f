"""OpenVINO as a peer: the layer as a graph of plain operators, and with its attention operator."""
import numpy
import openvino
import peer
from graph import layer_graph
from openvino import opset13

CORE = openvino.Core()


def compiled_run(model, length):
    compiled = CORE.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1,
                                                 "INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY"})
    request = compiled.create_infer_request()
    request.set_input_tensor(openvino.Tensor(peer.sequence(length), shared_memory=False))
    return request.infer


def fused_model(length):
    in_weight, in_bias, out_weight, out_bias = peer.layer_weights()
    x = opset13.parameter([1, length, peer.WIDTH], numpy.float32)
    packed = opset13.add(opset13.matmul(x, in_weight, False, False), in_bias)
    parted = opset13.reshape(packed, [1, length, 3, peer.HEADS, peer.HEAD], False)
    heads = opset13.split(opset13.transpose(parted, [2, 0, 3, 1, 4]), 0, 3).outputs()
    query, key, value = (opset13.squeeze(part, [0]) for part in heads)
    context = opset13.scaled_dot_product_attention(query, key, value)
    rows = opset13.reshape(opset13.transpose(context, [0, 2, 1, 3]), [1, length, peer.WIDTH], False)
    return openvino.Model([opset13.add(opset13.matmul(rows, out_weight, False, False), out_bias)], [x])


def ways(length, weights):
    found = [("graph", compiled_run(CORE.read_model(layer_graph(length, weights)), length))]
    if not weights:
        found.append(("scaled_dot_product_attention", compiled_run(fused_model(length), length)))
    return found


peer.serve(f"openvino {openvino.__version__}", ways)
