#include "text/tokenizer_files.h"

#include "codec/utf8.h"
#include "text/load_config.h"
#include "text/special_tokens.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How CLIP and Qwen2 cut words. */
#define CLIP_WORDS "'s|'t|'re|'ve|'m|'ll|'d|[\\p{L}]+|[\\p{N}]|[^\\s\\p{L}\\p{N}]+"
#define QWEN2_WORDS                                                                                          \
	"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|"  \
	"\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

/* The files of one directory, as far as they are there. */
struct files {
	const char *directory;
	json_t *config, *map, *model; /* tokenizer_config.json, special_tokens_map.json, config.json */
	json_t *vocabulary;           /* token to id */
	json_t *merges;               /* a list of texts */
};

/* ---- reading */

/* Whether a line of a file is text: UTF-8 without NUL. */
static bool is_text(const char *line, size_t length)
{
	size_t size = 1;
	for (size_t at = 0; at < length && size > 0; at += size)
		size = line[at] != '\0' ? utf8_sequence(line + at, line + length) : 0;
	return size > 0;
}

/* Puts a line, its end taken off, into the object of tokens or the list of merges; false: no memory. */
static bool take_line(json_t *into, const char *line, size_t number)
{
	if (json_is_object(into))
		return json_object_set_new(into, line, json_integer((json_int_t)number)) == 0;
	if (strncmp(line, "#version", 8) == 0 || line[0] == '\0')
		return true;
	return json_array_append_new(into, json_string(line)) == 0;
}

static attn_status take_lines(const char *name, char *text, size_t length, json_t *into, attn_error *err)
{
	char *end = text + length;
	for (size_t number = 0; text < end; number++) {
		char *stop = memchr(text, '\n', (size_t)(end - text));
		stop = stop != NULL ? stop : end; /* where the file's text is terminated */
		if (!is_text(text, (size_t)(stop - text)))
			return load_failed(err, ATTN_FORMAT, "%s: line %zu is not UTF-8", name, number + 1);
		*stop = '\0';
		if (stop > text && stop[-1] == '\r')
			stop[-1] = '\0';
		if (!take_line(into, text, number))
			return load_no_memory(err);
		text = stop + 1;
	}
	return ATTN_OK;
}

/* A file of lines as a list or object; *out NULL when there is none. */
static attn_status read_lines(const char *directory, const char *name, bool tokens, json_t **out,
                              attn_error *err)
{
	char *text;
	size_t length;
	*out = NULL;
	attn_status status = load_file(directory, name, &text, &length, err);
	if (status != ATTN_OK || text == NULL)
		return status;
	json_t *into = tokens ? json_object() : json_array();
	status = into == NULL ? load_no_memory(err) : take_lines(name, text, length, into, err);
	free(text);
	if (status == ATTN_OK)
		*out = into;
	else
		json_decref(into);
	return status;
}

static bool is_there(const char *directory, const char *name)
{
	char path[4096];
	int length = snprintf(path, sizeof path, "%s/%s", directory, name);
	return length > 0 && (size_t)length < sizeof path && access(path, F_OK) == 0;
}

static bool has_sentencepiece(const char *directory)
{
	static const char *const names[] = {"tokenizer.model", "spiece.model", "sentencepiece.bpe.model",
	                                    "sentencepiece.model", "source.spm"};
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		if (is_there(directory, names[i]))
			return true;
	}
	return false;
}

/* ---- what classes leave unsaid */

/* Puts the parts into one object, all of which are given up. */
static attn_status finish(json_t *parts, json_t *model, json_t *added, json_t **out, attn_error *err)
{
	int failed = parts == NULL || model == NULL;
	if (parts != NULL && json_object_set_new(parts, "model", model) != 0)
		failed = 1;
	if (parts == NULL)
		json_decref(model);
	if (!failed && json_object_set(parts, "added_tokens", added) != 0)
		failed = 1;
	json_decref(added);
	if (failed) {
		json_decref(parts);
		return load_no_memory(err);
	}
	*out = parts;
	return ATTN_OK;
}

static struct special_tokens tokens_of(const struct files *files, const json_t *defaults)
{
	return (struct special_tokens){files->config, files->map, defaults, files->vocabulary};
}

/* The id of the token of a role; an error when there is none in the vocabulary. */
static attn_status role_id(const struct special_tokens *tokens, const char *role, const char **text,
                           json_int_t *id, attn_error *err)
{
	*text = special_tokens_text(tokens, role);
	const json_t *found = *text != NULL ? json_object_get(tokens->vocabulary, *text) : NULL;
	if (!json_is_integer(found))
		return load_failed(err, ATTN_CONFIG, "the %s '%s' is not in the vocabulary", role,
		                   *text != NULL ? *text : "");
	*id = json_integer_value(found);
	return ATTN_OK;
}

/* A post-processor of `type` with the tokens of two roles around the sequence. */
static attn_status pack_pair(const struct special_tokens *tokens, const char *type, const char *first,
                             const char *last, json_t **out, attn_error *err)
{
	const char *first_text, *last_text;
	json_int_t first_id, last_id;
	attn_status status = role_id(tokens, first, &first_text, &first_id, err);
	if (status == ATTN_OK)
		status = role_id(tokens, last, &last_text, &last_id, err);
	if (status != ATTN_OK)
		return status;
	*out = json_pack("{s:s,s:[s,I],s:[s,I]}", "type", type, "cls", first_text, first_id, "sep", last_text,
	                 last_id);
	return *out != NULL ? ATTN_OK : load_no_memory(err);
}

static json_t *defaults_of(const char *bos, const char *eos, const char *unk, const char *pad, bool mask)
{
	return json_pack("{s:s,s:s,s:s,s:s,s:s,s:s,s:s*,s:b}", "bos_token", bos, "eos_token", eos,
	                 "unk_token", unk, "pad_token", pad, "sep_token", eos, "cls_token", bos, "mask_token",
	                 mask ? "<mask>" : NULL, "mask_lstrip", mask);
}

/* ---- BERT */

/* {"bos_token": ...} of BERT's class, which has no beginning and end of its own. */
static json_t *bert_defaults(void)
{
	return json_pack("{s:s,s:s,s:s,s:s,s:s}", "unk_token", "[UNK]", "sep_token", "[SEP]", "pad_token",
	                 "[PAD]", "cls_token", "[CLS]", "mask_token", "[MASK]");
}

static attn_status bert_normalizer(const json_t *config, json_t **out, attn_error *err)
{
	bool lower, ideographs, accents, basic;
	attn_status status = load_flag(config, "do_lower_case", true, &lower, err);
	if (status == ATTN_OK)
		status = load_flag(config, "tokenize_chinese_chars", true, &ideographs, err);
	if (status == ATTN_OK)
		status = load_flag(config, "strip_accents", lower, &accents, err);
	if (status == ATTN_OK)
		status = load_flag(config, "do_basic_tokenize", true, &basic, err);
	if (status == ATTN_OK && !basic)
		status = load_failed(err, ATTN_CONFIG, "do_basic_tokenize false is not supported");
	if (status != ATTN_OK)
		return status;
	*out = json_pack("{s:s,s:b,s:b,s:b,s:b}", "type", "BertNormalizer", "clean_text", 1,
	                 "handle_chinese_chars", ideographs, "strip_accents", accents, "lowercase", lower);
	return *out != NULL ? ATTN_OK : load_no_memory(err);
}

static attn_status make_bert(const struct files *files, json_t **out, attn_error *err)
{
	json_t *defaults = bert_defaults(), *normalizer = NULL, *post = NULL, *added = NULL;
	struct special_tokens tokens = tokens_of(files, defaults);
	attn_status status = defaults != NULL ? ATTN_OK : load_no_memory(err);
	if (status == ATTN_OK)
		status = bert_normalizer(files->config, &normalizer, err);
	if (status == ATTN_OK)
		status = pack_pair(&tokens, "BertProcessing", "cls_token", "sep_token", &post, err);
	if (status == ATTN_OK)
		status = special_tokens_list(&tokens, &added, err);
	if (status == ATTN_OK) {
		json_t *parts = json_pack("{s:O,s:{s:s},s:O,s:{s:s,s:s,s:b}}", "normalizer", normalizer,
		                          "pre_tokenizer", "type", "BertPreTokenizer", "post_processor", post,
		                          "decoder", "type", "WordPiece", "prefix", "##", "cleanup", 1);
		json_t *model =
		    json_pack("{s:s,s:s,s:s,s:i,s:O}", "type", "WordPiece", "unk_token",
		              special_tokens_text(&tokens, "unk_token"), "continuing_subword_prefix", "##",
		              "max_input_chars_per_word", 100, "vocab", files->vocabulary);
		status = finish(parts, model, added, out, err);
	}
	json_decref(defaults);
	json_decref(normalizer);
	json_decref(post);
	return status;
}

/* ---- byte-level BPE */

enum bpe_class { CLASS_GPT2, CLASS_ROBERTA, CLASS_CLIP, CLASS_QWEN2 };

struct named_class {
	const char *name;
	enum bpe_class class;
};

static bool find_named(const char *name, size_t length, const struct named_class *list, enum bpe_class *out)
{
	for (; list->name != NULL; list++) {
		if (strlen(list->name) != length || strncmp(list->name, name, length) != 0)
			continue;
		*out = list->class;
		return true;
	}
	return false;
}

/* The class that tokenizer_config.json names, or the one that config.json's model_type has. */
static attn_status find_class(const struct files *files, enum bpe_class *out, attn_error *err)
{
	static const struct named_class classes[] = {
	    {"GPT2Tokenizer", CLASS_GPT2},    {"RobertaTokenizer", CLASS_ROBERTA},
	    {"BartTokenizer", CLASS_ROBERTA}, {"CLIPTokenizer", CLASS_CLIP},
	    {"Qwen2Tokenizer", CLASS_QWEN2},  {NULL, CLASS_GPT2}};
	static const struct named_class types[] = {
	    {"gpt2", CLASS_GPT2}, {"roberta", CLASS_ROBERTA},      {"bart", CLASS_ROBERTA},
	    {"clip", CLASS_CLIP}, {"clip_text_model", CLASS_CLIP}, {"qwen2", CLASS_QWEN2},
	    {NULL, CLASS_GPT2}};
	const char *name, *type;
	attn_status status = load_string(files->config, "tokenizer_class", NULL, &name, err);
	if (status == ATTN_OK)
		status = load_string(files->model, "model_type", "", &type, err);
	if (status != ATTN_OK)
		return status;
	const char *given = name != NULL ? name : type;
	size_t length = strlen(given);
	if (length > 4 && strcmp(given + length - 4, "Fast") == 0)
		length -= 4;
	if (find_named(given, length, name != NULL ? classes : types, out))
		return ATTN_OK;
	return load_failed(
	    err, ATTN_CONFIG,
	    "%s '%s' does not say how vocab.json and merges.txt are meant; tokenizer.json would",
	    name != NULL ? "the tokenizer_class" : "the model_type", given);
}

static json_t *class_defaults(enum bpe_class class)
{
	if (class == CLASS_ROBERTA)
		return defaults_of("<s>", "</s>", "<unk>", "<pad>", true);
	const char *bos = class == CLASS_CLIP ? "<|startoftext|>" : "<|endoftext|>";
	return defaults_of(bos, "<|endoftext|>", "<|endoftext|>", "<|endoftext|>", false);
}

/* Normalizer, pre-tokenizer and decoder of a class. */
static json_t *class_parts(enum bpe_class class, bool blank)
{
	switch (class) {
	case CLASS_CLIP:
		return json_pack(
		    "{s:{s:s,s:[{s:s},{s:s,s:{s:s},s:s},{s:s}]},s:{s:s,s:[{s:s,s:{s:s},s:s,s:b},{s:s,s:b}]},"
		    "s:{s:s,s:[{s:s},{s:s,s:{s:s},s:s},{s:s,s:s,s:i,s:i}]}}",
		    "normalizer", "type", "Sequence", "normalizers", "type", "NFC", "type", "Replace",
		    "pattern", "Regex", "\\s+", "content", " ", "type", "Lowercase", "pre_tokenizer", "type",
		    "Sequence", "pretokenizers", "type", "Split", "pattern", "Regex", CLIP_WORDS, "behavior",
		    "Removed", "invert", 1, "type", "ByteLevel", "add_prefix_space", 0, "decoder", "type",
		    "Sequence", "decoders", "type", "ByteLevel", "type", "Replace", "pattern", "String",
		    "</w>", "content", " ", "type", "Strip", "content", " ", "start", 0, "stop", 1);
	case CLASS_QWEN2:
		return json_pack("{s:{s:s},s:{s:s,s:[{s:s,s:{s:s},s:s,s:b},{s:s,s:b,s:b}]},s:{s:s}}",
		                 "normalizer", "type", "NFC", "pre_tokenizer", "type", "Sequence",
		                 "pretokenizers", "type", "Split", "pattern", "Regex", QWEN2_WORDS,
		                 "behavior", "Isolated", "invert", 0, "type", "ByteLevel", "add_prefix_space",
		                 blank, "use_regex", 0, "decoder", "type", "ByteLevel");
	default:
		return json_pack("{s:{s:s,s:b},s:{s:s}}", "pre_tokenizer", "type", "ByteLevel",
		                 "add_prefix_space", blank, "decoder", "type", "ByteLevel");
	}
}

/* What goes around a sequence: for GPT-2 and Qwen2 the beginning, if the config asks for it. */
static attn_status class_post(const struct files *files, enum bpe_class class,
                              const struct special_tokens *tokens, bool blank, json_t **out, attn_error *err)
{
	bool trims = class == CLASS_ROBERTA, bos;
	attn_status status;
	if (class == CLASS_ROBERTA || class == CLASS_CLIP) {
		status =
		    pack_pair(tokens, "RobertaProcessing", class == CLASS_CLIP ? "bos_token" : "cls_token",
		              class == CLASS_CLIP ? "eos_token" : "sep_token", out, err);
		if (status == ATTN_OK &&
		    (json_object_set_new(*out, "trim_offsets", json_boolean(trims)) != 0 ||
		     json_object_set_new(*out, "add_prefix_space", json_boolean(blank)) != 0))
			status = load_no_memory(err);
		return status;
	}
	status = load_flag(files->config, "add_bos_token", false, &bos, err);
	if (status != ATTN_OK || !bos)
		return status;
	const char *text;
	json_int_t id;
	status = role_id(tokens, "bos_token", &text, &id, err);
	if (status != ATTN_OK)
		return status;
	*out =
	    json_pack("{s:s,s:[{s:{s:s}},{s:{s:s}}],s:{s:{s:[I]}}}", "type", "TemplateProcessing", "single",
	              "SpecialToken", "id", text, "Sequence", "id", "A", "special_tokens", text, "ids", id);
	return *out != NULL ? ATTN_OK : load_no_memory(err);
}

static attn_status make_bpe_of(const struct files *files, enum bpe_class class, const json_t *defaults,
                               json_t **out, attn_error *err)
{
	struct special_tokens tokens = tokens_of(files, defaults);
	json_t *post = NULL, *added = NULL;
	bool blank;
	attn_status status = load_flag(files->config, "add_prefix_space", false, &blank, err);
	if (status == ATTN_OK)
		status = class_post(files, class, &tokens, blank, &post, err);
	if (status == ATTN_OK)
		status = special_tokens_list(&tokens, &added, err);
	if (status == ATTN_OK) {
		bool clip = class == CLASS_CLIP;
		json_t *model =
		    json_pack("{s:s,s:O,s:O,s:s,s:s*}", "type", "BPE", "vocab", files->vocabulary, "merges",
		              files->merges, "end_of_word_suffix", clip ? "</w>" : "", "unk_token",
		              clip ? special_tokens_text(&tokens, "unk_token") : NULL);
		json_t *parts = class_parts(class, blank);
		if (parts != NULL && post != NULL && json_object_set(parts, "post_processor", post) != 0) {
			json_decref(parts);
			parts = NULL;
		}
		status = finish(parts, model, added, out, err);
	}
	json_decref(post);
	return status;
}

static attn_status make_bpe(const struct files *files, json_t **out, attn_error *err)
{
	enum bpe_class class = CLASS_GPT2;
	attn_status status = find_class(files, &class, err);
	if (status != ATTN_OK)
		return status;
	json_t *defaults = class_defaults(class);
	status = defaults != NULL ? make_bpe_of(files, class, defaults, out, err) : load_no_memory(err);
	json_decref(defaults);
	return status;
}

/* ---- characters */

static bool is_one_character(const char *text)
{
	size_t points = 0;
	for (; *text != '\0'; text++)
		points += ((unsigned char)*text & 0xC0) != 0x80;
	return points == 1;
}

static bool is_bracketed(const char *text)
{
	char first = text[0], last = text[0] != '\0' ? text[strlen(text) - 1] : '\0';
	return (first == '<' && last == '>') || (first == '[' && last == ']');
}

/* Longer tokens, all of them in brackets, are special. */
static attn_status list_longer(const struct files *files, json_t *into, attn_error *err)
{
	const char *text;
	json_t *id;
	json_object_foreach(files->vocabulary, text, id)
	{
		if (is_one_character(text))
			continue;
		if (!is_bracketed(text))
			return load_failed(err, ATTN_CONFIG,
			                   "vocab.json without merges.txt has the token '%s', which is not "
			                   "one character",
			                   text);
		json_t *token = json_pack("{s:s,s:O,s:b}", "content", text, "id", id, "special", 1);
		if (json_array_append_new(into, token) != 0)
			return load_no_memory(err);
	}
	return ATTN_OK;
}

static attn_status make_characters(const struct files *files, json_t **out, attn_error *err)
{
	json_t *added = json_array();
	attn_status status = added != NULL ? list_longer(files, added, err) : load_no_memory(err);
	if (status != ATTN_OK) {
		json_decref(added);
		return status;
	}
	struct special_tokens tokens = tokens_of(files, NULL);
	const char *unknown = special_tokens_text(&tokens, "unk_token");
	if (unknown == NULL)
		unknown = json_object_get(files->vocabulary, "[UNK]") != NULL ? "[UNK]" : "<unk>";
	json_t *parts =
	    json_pack("{s:{s:s,s:{s:s},s:s},s:{s:s}}", "pre_tokenizer", "type", "Split", "pattern", "Regex",
	              "[\\s\\S]", "behavior", "Isolated", "decoder", "type", "Fuse");
	json_t *model =
	    json_pack("{s:s,s:O,s:s}", "type", "WordLevel", "vocab", files->vocabulary, "unk_token", unknown);
	return finish(parts, model, added, out, err);
}

/* ---- which there are */

static attn_status make_sentencepiece(const struct files *files, json_t **out, attn_error *err)
{
	json_t *none = json_object();
	json_t *model = json_pack("{s:s,s:O}", "type", "Unigram", "vocab",
	                          files->vocabulary != NULL ? files->vocabulary : none);
	json_decref(none);
	return finish(json_object(), model, json_array(), out, err);
}

static attn_status make_from(struct files *files, json_t **out, attn_error *err)
{
	attn_status status = read_lines(files->directory, "vocab.txt", true, &files->vocabulary, err);
	if (status != ATTN_OK)
		return status;
	if (files->vocabulary != NULL)
		return make_bert(files, out, err);
	status = load_json(files->directory, "vocab.json", &files->vocabulary, err);
	if (status == ATTN_OK)
		status = read_lines(files->directory, "merges.txt", false, &files->merges, err);
	if (status != ATTN_OK)
		return status;
	if (files->vocabulary != NULL && files->merges != NULL)
		return make_bpe(files, out, err);
	if (has_sentencepiece(files->directory))
		return make_sentencepiece(files, out, err);
	return files->vocabulary != NULL ? make_characters(files, out, err) : ATTN_OK;
}

attn_status tokenizer_files_read(const char *directory, json_t **out, attn_error *err)
{
	struct files files = {.directory = directory};
	attn_status status = load_json(directory, "tokenizer.json", out, err);
	if (status != ATTN_OK || *out != NULL)
		return status;
	status = load_json(directory, "tokenizer_config.json", &files.config, err);
	if (status == ATTN_OK)
		status = load_json(directory, "special_tokens_map.json", &files.map, err);
	if (status == ATTN_OK)
		status = load_json(directory, "config.json", &files.model, err);
	if (status == ATTN_OK)
		status = make_from(&files, out, err);
	json_decref(files.config);
	json_decref(files.map);
	json_decref(files.model);
	json_decref(files.vocabulary);
	json_decref(files.merges);
	return status;
}
