/* Building the model: tensors are read in the order in which model_packing.py yields them, checked and rearranged. */
#include "engine.h"

static void release_model(Model *model)
{
    if (!model) return;
    for (size_t i = 0; i < model->n_owned; i++) release(model->owned[i]);
    release(model->owned);
    release(model);
}

/* The tensors that were passed, and the first error. After an error every read returns without effect. */
typedef struct {
    Model *model;
    const float *const *tensors;
    const int64_t *sizes;
    int64_t n_tensors, at;
    const int32_t *counts; /* of heads */
    int64_t n_counts, counts_at;
    int code;
    char *message;
} Reader;

/* Zeroed memory that is released with the model; NULL after an error. */
static void *own(Reader *reader, size_t count, size_t size)
{
    Model *model = reader->model;
    if (reader->code) return NULL;
    if (model->n_owned == model->owned_capacity) {
        const size_t capacity = 2 * model->owned_capacity + 64;
        void **owned = reallocate(model->owned, capacity, sizeof(void *));
        if (!owned) { reader->code = MH_NO_MEMORY; return NULL; }
        model->owned = owned;
        model->owned_capacity = capacity;
    }
    void *buffer = allocate_zeroed(count, size);
    if (!buffer) { reader->code = MH_NO_MEMORY; return NULL; }
    return model->owned[model->n_owned++] = buffer;
}

/* The next tensor, which must have `size` elements, or 0 if it is optional. NULL: it has none, or an error. */
static const float *read_tensor(Reader *reader, int64_t size, int is_optional)
{
    if (reader->code) return NULL;
    if (reader->at >= reader->n_tensors) {
        reader->code = invalid(reader->message, "%lld tensors are too few", (long long)reader->n_tensors);
        return NULL;
    }
    const int64_t index = reader->at++, n_elements = reader->sizes[index];
    if (!n_elements && (is_optional || !size)) return NULL;
    if (n_elements != size || !reader->tensors[index]) {
        reader->code = invalid(reader->message, "tensor %lld has %lld elements; expected %lld", (long long)index,
                               (long long)n_elements, (long long)size);
        return NULL;
    }
    return reader->tensors[index];
}

/* A vector, or zeros where it has no elements, followed by padding up to `capacity`. */
static float *read_vector(Reader *reader, int64_t size, int64_t capacity, float padding, int is_optional)
{
    const float *from = read_tensor(reader, size, is_optional);
    float *to = own(reader, (size_t)capacity, sizeof(float));
    if (!to) return NULL;
    if (from) memcpy(to, from, (size_t)size * sizeof(float));
    for (int64_t i = size; i < capacity; i++) to[i] = padding;
    return to;
}

/* `n_rows` rows of the width, each padded with zeros; NULL: there are none, or an error. */
static float *read_rows(Reader *reader, int n_rows, int is_optional)
{
    const size_t width = (size_t)reader->model->settings.width, stride = (size_t)reader->model->width_stride;
    const float *from = read_tensor(reader, (int64_t)n_rows * (int64_t)width, is_optional);
    if (!from) return NULL;
    float *to = own(reader, (size_t)n_rows * stride, sizeof(float));
    for (size_t row = 0; to && row < (size_t)n_rows; row++)
        memcpy(to + row * stride, from + row * width, width * sizeof(float));
    return to;
}

/* Weight and bias of a norm; the last norms of a post-norm model have neither and are not used. */
static void read_norm(Reader *reader, Norm *norm, int is_optional)
{
    const int width = reader->model->settings.width, stride = reader->model->width_stride;
    norm->weight = read_vector(reader, width, stride, 0, is_optional);
    norm->bias = read_vector(reader, width, stride, 0, 1);
}

static void read_matrix(Reader *reader, Matrix *matrix, int n_out, int n_in, float padding)
{
    matrix->n_in = n_in;
    matrix->n_out = n_out;
    matrix->n_panels = ROUND_UP(n_out, PANEL) / PANEL;
    matrix->n_quads = ROUND_UP(n_in, 4) / 4;
    const int n_columns = matrix->n_panels * PANEL;
    const float *from = read_tensor(reader, (int64_t)n_out * n_in, 0);
    matrix->bias = read_vector(reader, n_out, n_columns, padding, 1);
    if (reader->model->settings.is_int8) {
        if (!reader->code && n_in > MAX_INT8_INPUTS)
            reader->code = invalid(reader->message, "int8 products have at most %d inputs, not %d", MAX_INT8_INPUTS, n_in);
        matrix->bytes = own(reader, (size_t)n_columns * matrix->n_quads, 4);
        matrix->scales = own(reader, n_columns, sizeof(float));
        matrix->sums = own(reader, n_columns, sizeof(int32_t));
        if (4 * matrix->n_quads > reader->model->bytes_stride) reader->model->bytes_stride = 4 * matrix->n_quads;
        for (int column = 0; from && !reader->code && column < n_out; column++)
            quantize_column(matrix, column, from + (size_t)column * n_in);
        return;
    }
    matrix->weights = own(reader, (size_t)n_columns * n_in, sizeof(float));
    for (int column = 0; from && !reader->code && column < n_out; column++) {
        float *panel = matrix->weights + (size_t)(column / PANEL) * n_in * PANEL + column % PANEL;
        for (int k = 0; k < n_in; k++) panel[(size_t)k * PANEL] = from[(size_t)column * n_in + k];
    }
}

static int read_count(Reader *reader)
{
    if (reader->code) return 0;
    if (reader->counts_at >= reader->n_counts) {
        reader->code = invalid(reader->message, "%lld head counts are too few", (long long)reader->n_counts);
        return 0;
    }
    const int count = reader->counts[reader->counts_at++];
    if (count < 0 || count > MAX_SIZE) {
        reader->code = invalid(reader->message, "head count %lld is %d", (long long)reader->counts_at - 1, count);
        return 0;
    }
    return count;
}

/* How many heads read each key head, the slopes, then W^Q W^K W^V in one matrix (in cross-attention two), then W^O. */
static void read_attention(Reader *reader, Attention *attention, int is_cross)
{
    const Settings *s = &reader->model->settings;
    attention->n_key_heads = read_count(reader);
    const int64_t first_count = reader->counts_at;
    int64_t n_heads = 0;
    for (int key = 0; !reader->code && key < attention->n_key_heads; key++) n_heads += read_count(reader);
    const int64_t widest = s->head_width + s->value_width;
    if (!reader->code && (n_heads + attention->n_key_heads) * widest > MAX_SIZE)
        reader->code = invalid(reader->message, "an attention has %lld heads of width %d and %d", (long long)n_heads,
                               s->head_width, s->value_width);
    if (reader->code) return;
    attention->n_heads = (int)n_heads;
    attention->key_head = own(reader, (size_t)n_heads, sizeof(int));
    for (int key = 0, head = 0; !reader->code && key < attention->n_key_heads; key++)
        for (int i = 0; i < reader->counts[first_count + key]; i++) attention->key_head[head++] = key;
    const int n_query = attention->n_heads * s->head_width;
    const int n_key_value = attention->n_key_heads * (s->head_width + s->value_width);
    attention->slopes = read_vector(reader, n_heads, n_heads + 1, 0, s->positions != ALIBI || is_cross);
    if (is_cross) {
        read_matrix(reader, &attention->in, n_query, s->width, 0);
        read_matrix(reader, &attention->keys_values, n_key_value, s->width, 0);
    } else
        read_matrix(reader, &attention->in, n_query + n_key_value, s->width, 0);
    read_matrix(reader, &attention->out, s->width, attention->n_heads * s->value_width, 0);
}

static void read_layer(Reader *reader, Layer *layer, int has_cross)
{
    Model *model = reader->model;
    const Settings *s = &model->settings;
    read_attention(reader, &layer->self, 0);
    read_norm(reader, &layer->self_norm, 0);
    if (has_cross) {
        read_attention(reader, &layer->cross, 1);
        read_norm(reader, &layer->cross_norm, 0);
    }
    read_matrix(reader, &layer->inner, s->feed_forward_width * (s->activation == SWIGLU ? 2 : 1), s->width, 0);
    read_matrix(reader, &layer->outer, s->width, s->feed_forward_width, 0);
    read_norm(reader, &layer->feed_forward_norm, 0);
    const Matrix *all[] = {&layer->self.in, &layer->cross.in, &layer->cross.keys_values, &layer->inner};
    for (int i = 0; i < 4; i++)
        if (all[i]->n_panels * PANEL > model->wide_stride) model->wide_stride = all[i]->n_panels * PANEL;
    const int n_heads = layer->self.n_heads > layer->cross.n_heads ? layer->self.n_heads : layer->cross.n_heads;
    const int heads_stride = ROUND_UP(n_heads * s->value_width + LANES, PANEL);
    if (heads_stride > model->heads_stride) model->heads_stride = heads_stride;
}

static int check_settings(const Settings *s, char *message)
{
    const struct { const char *name; int64_t value, least, most; } ranges[] = {
        {"vocab_size", s->vocab_size, 1, MAX_SIZE},
        {"width", s->width, 1, MAX_SIZE},
        {"feed_forward_width", s->feed_forward_width, 1, MAX_SIZE},
        {"n_encoder_layers", s->n_encoder_layers, 0, 1 << 16},
        {"n_decoder_layers", s->n_decoder_layers, 0, 1 << 16},
        {"head_width", s->head_width, 1, MAX_SIZE},
        {"value_width", s->value_width, 1, MAX_SIZE},
        {"max_length", s->max_length, 1, MAX_SIZE},
        {"activation", s->activation, RELU, SILU},
        {"norm", s->norm, LAYER_NORM, AFFINE},
        {"norm_first", s->norm_first, 0, 1},
        {"positions", s->positions, ADDED, NO_POSITIONS},
        {"bos", s->bos, 0, (int64_t)s->vocab_size - 1},
        {"eos", s->eos, 0, (int64_t)s->vocab_size - 1},
        {"is_int8", s->is_int8, 0, 1},
    };
    for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++)
        if (ranges[i].value < ranges[i].least || ranges[i].value > ranges[i].most)
            return invalid(message, "%s = %lld is not between %lld and %lld", ranges[i].name, (long long)ranges[i].value,
                           (long long)ranges[i].least, (long long)ranges[i].most);
    if (!(s->epsilon >= 0) || isinf(s->epsilon)) return invalid(message, "epsilon = %g is not a finite number", s->epsilon);
    if (s->positions == ROTARY && s->head_width % 2) return invalid(message, "rotary positions need an even head_width");
    return MH_OK;
}

static void read_model(Reader *reader)
{
    Model *model = reader->model;
    const Settings *s = &model->settings;
    model->width_stride = model->wide_stride = ROUND_UP(s->width, PANEL);
    model->source_table = read_rows(reader, s->vocab_size, 0);
    model->target_table = read_rows(reader, s->vocab_size, 0);
    model->source_positions = read_rows(reader, s->max_length, s->positions != ADDED);
    model->target_positions = read_rows(reader, s->max_length, s->positions != ADDED);
    read_matrix(reader, &model->output, s->vocab_size, s->width, -INFINITY); /* padding is never the largest logit */
    const int64_t n_angles = (int64_t)s->max_length * (s->head_width / 2);
    const int64_t capacity = s->positions == ROTARY ? n_angles : 0;
    model->sines = read_vector(reader, capacity, capacity, 0, 0);
    model->cosines = read_vector(reader, capacity, capacity, 0, 0);
    model->encoder = own(reader, (size_t)s->n_encoder_layers, sizeof(Layer));
    model->decoder = own(reader, (size_t)s->n_decoder_layers, sizeof(Layer));
    for (int i = 0; !reader->code && i < s->n_encoder_layers; i++) read_layer(reader, model->encoder + i, 0);
    read_norm(reader, &model->encoder_norm, !s->norm_first);
    for (int i = 0; !reader->code && i < s->n_decoder_layers; i++) read_layer(reader, model->decoder + i, 1);
    read_norm(reader, &model->decoder_norm, !s->norm_first);
    if (!reader->code && reader->at != reader->n_tensors)
        reader->code = invalid(reader->message, "%lld tensors were passed; expected %lld", (long long)reader->n_tensors,
                               (long long)reader->at);
    if (!reader->code && reader->counts_at != reader->n_counts)
        reader->code = invalid(reader->message, "%lld head counts were passed; expected %lld",
                               (long long)reader->n_counts, (long long)reader->counts_at);
}

/* Build a model from copies of the tensors; on MH_INVALID `message` (MESSAGE_SIZE characters) names the fault. */
EXPORT int mh_new(const Settings *settings, const float *const *tensors, const int64_t *sizes, int64_t n_tensors,
                  const int32_t *counts, int64_t n_counts, Model **result, char *message)
{
    *result = NULL;
    message[0] = 0;
    const int code = check_settings(settings, message);
    if (code) return code;
    Model *model = allocate_zeroed(1, sizeof(Model));
    if (!model) return MH_NO_MEMORY;
    model->settings = *settings;
    Reader reader = {model, tensors, sizes, n_tensors, 0, counts, n_counts, 0, MH_OK, message};
    read_model(&reader);
    if (reader.code)
        release_model(model);
    else
        *result = model;
    return reader.code;
}

EXPORT void mh_free(Model *model) { release_model(model); }
