"""The layer as an ONNX graph: plain operators, or with ONNX Runtime's own attention operator."""
import onnx
import peer
from onnx import TensorProto, helper, numpy_helper


def layer_graph(length, weights, fused=False):
    """Bytes of a model with input x [1, L, E], outputs y [1, L, E] and, with weights, w [1, H, L, L]."""
    names = ("in_weight", "in_bias", "out_weight", "out_bias")
    constants = [numpy_helper.from_array(numbers, name) for name, numbers in zip(names, peer.layer_weights())]

    def shape(name, *sizes):
        constants.append(helper.make_tensor(name, TensorProto.INT64, [len(sizes)], sizes))

    shape("head_shape", 1, length, 3, peer.HEADS, peer.HEAD)
    shape("row_shape", 1, length, peer.WIDTH)
    shape("first_axis", 0)
    constants.append(helper.make_tensor("scale", TensorProto.FLOAT, [], [peer.HEAD ** -0.5]))
    node = helper.make_node
    nodes = [node("MatMul", ["x", "in_weight"], ["product"]), node("Add", ["product", "in_bias"], ["packed"])]
    if fused:
        nodes += [node("Split", ["packed"], ["query", "key", "value"], axis=2, num_outputs=3),
                  node("MultiHeadAttention", ["query", "key", "value"], ["rows"], domain="com.microsoft",
                       num_heads=peer.HEADS)]
    else:
        nodes += [node("Reshape", ["packed", "head_shape"], ["parted"]),
                  node("Transpose", ["parted"], ["heads"], perm=[2, 0, 3, 1, 4]),
                  node("Split", ["heads"], ["query1", "key1", "value1"], axis=0, num_outputs=3),
                  *(node("Squeeze", [f"{name}1", "first_axis"], [name]) for name in ("query", "key", "value")),
                  node("Mul", ["query", "scale"], ["scaled"]),
                  node("Transpose", ["key"], ["turned"], perm=[0, 1, 3, 2]),
                  node("MatMul", ["scaled", "turned"], ["scores"]),
                  node("Softmax", ["scores"], ["w"], axis=-1),
                  node("MatMul", ["w", "value"], ["context"]),
                  node("Transpose", ["context"], ["joined"], perm=[0, 2, 1, 3]),
                  node("Reshape", ["joined", "row_shape"], ["rows"])]
    nodes += [node("MatMul", ["rows", "out_weight"], ["unbiased"]), node("Add", ["unbiased", "out_bias"], ["y"])]

    def value(name, *sizes):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, sizes)

    outputs = [value("y", 1, length, peer.WIDTH)] + ([value("w", 1, peer.HEADS, length, length)] if weights else [])
    graph = helper.make_graph(nodes, "layer", [value("x", 1, length, peer.WIDTH)], outputs, constants)
    sets = [helper.make_opsetid("", 18)] + ([helper.make_opsetid("com.microsoft", 1)] if fused else [])
    model = helper.make_model(graph, opset_imports=sets, ir_version=9)
    onnx.checker.check_model(model)
    return model.SerializeToString()
