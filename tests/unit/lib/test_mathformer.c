#include "kernel_sets.h"

#include <string.h>
#include <unistd.h>

/* Real weights: MathFormer does sums, one character a token, by taking the likeliest token again and again.
 */

#define FOLDER "../shared/data/models/mathformer-"

/* Tokens of vocab.json by their place: the first four stand for no character. */
static const char alphabet[] = "????0123456789+-*/=.()^% QR";

enum { MOST = 16, END = 2, LIKELIEST = 1 };

static int64_t token_of(char c)
{
	const char *at = strchr(alphabet + 4, c);
	ck_assert(at != NULL && c != '\0');
	return at - alphabet;
}

/* What follows the prompt until the end of the text, at most so many characters. */
static void continued(const attn_model *model, const attn_kernels *kernels, const char *prompt,
                      char out[MOST])
{
	int64_t tokens[2 * MOST], next = 0;
	size_t length = 0, written = 0;
	attn_arena *scratch = attn_arena_new(0);
	attn_executor executor = attn_executor_serial(scratch);
	for (; *prompt; prompt++)
		tokens[length++] = token_of(*prompt);
	while (written + 1 < MOST) {
		const attn_forward_call call = {.lengths = {length}, .top_logits = LIKELIEST};
		const attn_forward_sequence sequence = {.stacks = {{.tokens = tokens}},
		                                        .top_logit_indices = &next};
		ck_assert_int_eq(attn_model_forward(model, kernels, &executor, &call, &sequence, 1), ATTN_OK);
		if (next == END)
			break;
		tokens[length++] = next;
		out[written++] = alphabet[next];
	}
	out[written] = '\0';
	attn_arena_free(scratch);
}

static void answers(const attn_kernels *kernels, const char *name, const char *const (*sums)[2])
{
	char folder[128];
	attn_model *model = NULL;
	attn_error err = {ATTN_OK, ""};
	snprintf(folder, sizeof(folder), FOLDER "%s", name);
	if (access(folder, R_OK) != 0) {
		suite_skip("no " FOLDER "*");
		return;
	}
	ck_assert_msg(attn_model_open(folder, kernels, &model, &err) == ATTN_OK, "%s", err.message);
	for (; (*sums)[0]; sums++) {
		char text[MOST];
		continued(model, kernels, (*sums)[0], text);
		ck_assert_msg(strcmp(text, (*sums)[1]) == 0, "%s%s", (*sums)[0], text);
	}
	attn_model_free(model);
}

static void mathformer_adds(attn_kernels *kernels)
{
	static const char *const sums[][2] = {{"7+5=", "12"}, {"9+9=", "18"}, {"8+7=", "15"}, {NULL, NULL}};
	answers(kernels, "addformer", sums);
}
ON_EACH_SET(mathformer_adds)

static void mathformer_multiplies(attn_kernels *kernels)
{
	static const char *const sums[][2] = {{"7*5=", "35"}, {"9*9=", "81"}, {"3*4=", "12"}, {NULL, NULL}};
	answers(kernels, "mulformer", sums);
}
ON_EACH_SET(mathformer_multiplies)

SUITE_MAIN("mathformer", EACH_SET(mathformer_adds), EACH_SET(mathformer_multiplies))
