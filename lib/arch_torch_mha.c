/*
 * arch_torch_mha.c - one layer of torch.nn.MultiheadAttention: besides what torch_layers.h tells, bias_k and
 * bias_v [1, 1, E], a key and value that come after all others, and where config.json has add_zero_attn, one
 * of zeros after these.
 */
#include "model.h"
#include "torch_layers.h"

#include <string.h>

/* [rows, embed]: the tensor's row, if there should be one, then zeros. */
static const float *rows_load(attn_loader *load, const char *name, bool learned, size_t rows, size_t embed)
{
	const size_t shape[] = {1, 1, embed};
	const attn_stored_tensor *stored = NULL;
	size_t bytes =
	    attn_load_product(load, attn_load_product(load, rows, embed, name), sizeof(float), name);
	if (attn_load_ok(load) && learned)
		load->status = attn_weights_take(load->weights, name, 3, shape, &stored, load->err);
	if (!attn_load_ok(load))
		return NULL;
	float *numbers = attn_model_memory(load->model, bytes);
	if (!numbers) {
		attn_load_fail(load, ATTN_MEMORY, "tensor \"%s\": out of memory", name);
		return NULL;
	}
	memset(numbers, 0, bytes);
	if (stored)
		attn_to_float32(stored->dtype, stored->data, embed, numbers);
	attn_model_count(load->model, stored ? embed : 0);
	return numbers;
}

static void appended_load(attn_loader *load, size_t embed, attn_layer *layer)
{
	const bool learned = attn_load_has_tensor(load, "bias_k") || attn_load_has_tensor(load, "bias_v");
	const bool zero = attn_load_flag(load, "add_zero_attn", false);
	layer->appended = (size_t)learned + (size_t)zero;
	if (layer->appended == 0)
		return;
	layer->appended_key = rows_load(load, "bias_k", learned, layer->appended, embed);
	layer->appended_value = rows_load(load, "bias_v", learned, layer->appended, embed);
}

static void torch_mha_open(attn_loader *load)
{
	const size_t heads = attn_load_size(load, "num_heads");
	const size_t embed = attn_torch_width(load, "");
	if (!attn_model_make_layers(load->model, 1, 0))
		attn_load_fail(load, ATTN_MEMORY, "out of memory");
	if (!attn_load_ok(load))
		return;
	attn_sublayer self = {.layer = attn_model_layer_of(load->model, 0, ATTN_SELF),
	                      .options = attn_model_options_of(load->model, 0, ATTN_SELF)};
	attn_torch_attention(load, "", heads, embed, &self);
	appended_load(load, embed, self.layer);
}

const attn_arch attn_arch_torch_mha = {"torch-mha", torch_mha_open};
