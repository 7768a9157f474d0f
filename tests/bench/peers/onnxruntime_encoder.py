"""ONNX Runtime as a peer in a forward pass: a graph of plain operators, and one of its own fused operators."""
import encoder
import numpy
import onnxruntime
import peer
from onnx import TensorProto, helper, numpy_helper

ONCE = "com.microsoft"  # domain of ONNX Runtime's own operators


class Graph:
    """Nodes in order; each method adds some and gives the name of their result."""

    def __init__(self, length, batch, fused):
        self.length, self.batch, self.fused = length, batch, fused
        self.constants = [numpy_helper.from_array(numbers, name) for name, numbers in encoder.weights().items()]
        self.nodes = []

    def add(self, kind, inputs, count=1, **attributes):
        names = [f"{kind}{len(self.nodes)}.{i}" for i in range(count)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0] if count == 1 else names

    def shape(self, *sizes):
        name = f"shape{len(self.constants)}"
        self.constants.append(helper.make_tensor(name, TensorProto.INT64, [len(sizes)], sizes))
        return name

    def project(self, x, name):
        return self.add("Add", [self.add("MatMul", [x, f"{name}.weight"]), f"{name}.bias"])

    def add_norm(self, x, y, name):
        if self.fused:
            return self.add("SkipLayerNormalization", [x, y, f"{name}.weight", f"{name}.bias"], domain=ONCE,
                            epsilon=encoder.EPSILON)
        return self.norm(self.add("Add", [x, y]), name)

    def norm(self, x, name):
        return self.add("LayerNormalization", [x, f"{name}.weight", f"{name}.bias"], axis=-1, epsilon=encoder.EPSILON)

    def attention(self, packed):
        if self.fused:
            parts = self.add("Split", [packed], 3, axis=2, num_outputs=3)
            return self.add("MultiHeadAttention", parts, domain=ONCE, num_heads=encoder.HEADS)
        parted = self.add("Reshape", [packed, self.shape(self.batch, self.length, 3, encoder.HEADS, encoder.HEAD)])
        heads = self.add("Split", [self.add("Transpose", [parted], perm=[2, 0, 3, 1, 4])], 3, axis=0, num_outputs=3)
        axis = self.shape(0)
        query, key, value = (self.add("Squeeze", [part, axis]) for part in heads)
        scores = self.add("MatMul", [query, self.add("Transpose", [key], perm=[0, 1, 3, 2])])
        weights = self.add("Softmax", [self.add("Mul", [scores, "scale"])], axis=-1)
        context = self.add("Transpose", [self.add("MatMul", [weights, value])], perm=[0, 2, 1, 3])
        return self.add("Reshape", [context, self.shape(self.batch, self.length, encoder.WIDTH)])

    def block(self, x, layer):
        context = self.attention(self.project(x, f"{layer}.packed"))
        x = self.add_norm(x, self.project(context, f"{layer}.out"), f"{layer}.norm1")
        inner = self.add("Gelu", [self.project(x, f"{layer}.up")])
        return self.add_norm(x, self.project(inner, f"{layer}.down"), f"{layer}.norm2")

    def model(self):
        self.constants.append(helper.make_tensor("scale", TensorProto.FLOAT, [], [encoder.HEAD ** -0.5]))
        self.constants.append(numpy_helper.from_array(numpy.arange(self.length, dtype=numpy.int64), "places"))
        words, places = self.add("Gather", ["words", "tokens"]), self.add("Gather", ["positions", "places"])
        x = self.norm(self.add("Add", [words, places]), "norm")
        for layer in range(encoder.LAYERS):
            x = self.block(x, layer)
        given = helper.make_tensor_value_info("tokens", TensorProto.INT64, [self.batch, self.length])
        found = helper.make_tensor_value_info(x, TensorProto.FLOAT, [self.batch, self.length, encoder.WIDTH])
        graph = helper.make_graph(self.nodes, "encoder", [given], [found], self.constants)
        sets = [helper.make_opsetid("", 20), helper.make_opsetid(ONCE, 1)]
        return helper.make_model(graph, opset_imports=sets, ir_version=9).SerializeToString()


def session_run(length, batch, fused):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(Graph(length, batch, fused).model(), options, providers=["CPUExecutionProvider"])
    tokens = {"tokens": encoder.tokens(length, batch)}
    return lambda: session.run(None, tokens)


def ways(length, batch):
    return [("plain operators", session_run(length, batch, False)), ("fused operators", session_run(length, batch, True))]


peer.serve(f"onnxruntime {onnxruntime.__version__}", ways)
