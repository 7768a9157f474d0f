"""A model of MLServer's: one multi-head self-attention layer in torch, with per-head weights when asked for."""
import torch
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceRequest, InferenceResponse


class LayerRuntime(MLModel):
    async def load(self):
        parameters = self.settings.parameters.extra
        self.layer = torch.nn.MultiheadAttention(parameters["width"], parameters["heads"], batch_first=True).eval()
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        query = torch.from_numpy(NumpyCodec.decode_input(payload.inputs[0]))
        wanted = payload.parameters is not None and getattr(payload.parameters, "weights", False)
        with torch.inference_mode():
            context, weights = self.layer(query, query, query, need_weights=wanted, average_attn_weights=False)
        found = {"context": context} | ({"weights": weights} if wanted else {})
        return InferenceResponse(model_name=self.name, outputs=[NumpyCodec.encode_output(name, tensor.numpy())
                                                                for name, tensor in found.items()])
