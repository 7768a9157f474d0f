"""ONNX Runtime as a peer: the layer as a graph of plain operators, and with its own attention operator."""
import numpy
import onnxruntime
import peer
from graph import layer_graph


def session_run(model, length, weights):
    """A run that reads and writes tensors made beforehand."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    binding.bind_ortvalue_input("x", onnxruntime.OrtValue.ortvalue_from_numpy(peer.sequence(length)))
    shapes = {"y": [1, length, peer.WIDTH]} | ({"w": [1, peer.HEADS, length, length]} if weights else {})
    for name, shape in shapes.items():
        binding.bind_ortvalue_output(name, onnxruntime.OrtValue.ortvalue_from_shape_and_type(shape, numpy.float32))
    return lambda: session.run_with_iobinding(binding)


def ways(length, weights):
    found = [("graph", session_run(layer_graph(length, weights), length, weights))]
    if not weights:
        found.append(("MultiHeadAttention", session_run(layer_graph(length, False, fused=True), length, False)))
    return found


peer.serve(f"onnxruntime {onnxruntime.__version__}", ways)
