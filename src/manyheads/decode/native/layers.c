/* The encoder and one decoder step, over rows: every token of every sentence is one row, and no row is padding. */
#include "engine.h"

/* Normalize each row independently; its padding stays 0. */
static void normalize(const Model *model, const Norm *norm, const float *from, float *to, int n_rows)
{
    const Settings *s = &model->settings;
    const int width = s->width, stride = model->width_stride, n_padding = stride - width;
    for (int row = 0; row < n_rows; row++, from += stride, to += stride) {
        vec mean = {0}, by = splat(1);
        if (s->norm == LAYER_NORM) {
            vec sum = {0};
            for (int i = 0; i < stride; i += LANES) sum += load(from + i);
            mean = splat(horizontal_sum(sum) / width);
        }
        if (s->norm != AFFINE) {
            vec squares = {0};
            for (int i = 0; i < stride; i += LANES) {
                vec difference = load(from + i) - mean;
                squares += difference * difference;
            }
            float variance = (horizontal_sum(squares) - n_padding * mean[0] * mean[0]) / width;
            by = splat(1 / sqrtf(variance + s->epsilon));
        }
        for (int i = 0; i < stride; i += LANES)
            store(to + i, (load(from + i) - mean) * by * load(norm->weight + i) + load(norm->bias + i));
    }
}

INLINE vec logistic(vec x) { return splat(1) / (splat(1) + exponential(-x)); }

/* x/2 (1 + erf(x/sqrt 2)), erf to 1.5e-7 (Abramowitz and Stegun 7.1.26). */
INLINE vec gelu(vec x)
{
    vec size = vector_max(x, -x) * splat(0.70710678118654752f);
    vec t = splat(1) / (splat(1) + splat(0.3275911f) * size);
    vec power = splat(1.061405429f);
    power = power * t + splat(-1.453152027f);
    power = power * t + splat(1.421413741f);
    power = power * t + splat(-0.284496736f);
    power = power * t + splat(0.254829592f);
    vec error = splat(1) - power * t * exponential(-size * size);
    ivec sign = (ivec)x & (ivec)splat(-0.0f);
    return splat(0.5f) * x * (splat(1) + (vec)((ivec)error | sign));
}

/* In place: the outer matrix reads the first `feed_forward_width` numbers of each row. */
static void activate(const Settings *s, float *rows, int n_rows, int stride)
{
    const int width = s->feed_forward_width;
    for (int row = 0; row < n_rows; row++, rows += stride) {
        if (s->activation == SWIGLU) { /* the gates come first, then the values that they multiply */
            int i = 0;
            for (; i + LANES <= width; i += LANES) {
                vec gate = load(rows + i);
                store(rows + i, gate * logistic(gate) * load(rows + width + i));
            }
            for (; i < width; i++) rows[i] = rows[i] / (1 + expf(-rows[i])) * rows[width + i];
        } else /* the padding of a row may change: it is never read */
            for (int i = 0; i < width; i += LANES) {
                vec x = load(rows + i);
                vec silu_or_relu = s->activation == SILU ? x * logistic(x) : vector_max(x, splat(0));
                store(rows + i, s->activation == GELU ? gelu(x) : silu_or_relu);
            }
    }
}

/* norm(x + update) in a post-norm model, x + update in a pre-norm model. */
static void add_update(const Workspace *work, const Norm *norm, int n_rows)
{
    const size_t n = (size_t)n_rows * work->model->width_stride;
    for (size_t i = 0; i < n; i += LANES) store(work->x + i, load(work->x + i) + load(work->update + i));
    if (!work->model->settings.norm_first) normalize(work->model, norm, work->x, work->x, n_rows);
}

/* The input of a sublayer: norm(x) in a pre-norm model, x in a post-norm model. */
static const float *sublayer_input(const Workspace *work, const Norm *norm, int n_rows)
{
    if (!work->model->settings.norm_first) return work->x;
    normalize(work->model, norm, work->x, work->normed, n_rows);
    return work->normed;
}

static void feed_forward(const Workspace *work, const Layer *layer, int n_rows)
{
    const Model *model = work->model;
    const float *input = sublayer_input(work, &layer->feed_forward_norm, n_rows);
    multiply(work, &layer->inner, input, n_rows, model->width_stride, work->wide, model->wide_stride);
    activate(&model->settings, work->wide, n_rows, model->wide_stride);
    multiply(work, &layer->outer, work->wide, n_rows, model->wide_stride, work->update, model->width_stride);
    add_update(work, &layer->feed_forward_norm, n_rows);
}

/* W^O of the heads' outputs, added to the residual stream; an attention without heads adds its bias, if it has one. */
static void project_heads(const Workspace *work, const Attention *attention, const Norm *norm, int n_rows)
{
    const Model *model = work->model;
    multiply(work, &attention->out, work->heads, n_rows, model->heads_stride, work->update, model->width_stride);
    add_update(work, norm, n_rows);
}

static void embed(const Model *model, const float *table, const float *positions, int id, int position, float *to)
{
    const int stride = model->width_stride;
    const float *embedding = table + (size_t)id * stride;
    memcpy(to, embedding, stride * sizeof(float));
    if (!positions) return;
    positions += (size_t)position * stride;
    for (int i = 0; i < stride; i += LANES) store(to + i, load(embedding + i) + load(positions + i));
}

/* Encode some sentences, all tokens in one stack of rows, and store the keys and values of the cross-attentions. */
static int encode(const Workspace *work, const Job *job, Sentence **sentences, int n_sentences)
{
    const Model *model = work->model;
    const Settings *s = &model->settings;
    const int stride = model->width_stride, wide = model->wide_stride;
    int n_rows = 0, longest = 0;
    for (int i = 0; i < n_sentences; i++) {
        const int32_t *ids = job->ids + job->starts[sentences[i]->index];
        for (int position = 0; position < sentences[i]->n_source; position++, n_rows++)
            embed(model, model->source_table, model->source_positions, ids[position], position,
                  work->x + (size_t)n_rows * stride);
        if (sentences[i]->n_source > longest) longest = sentences[i]->n_source;
    }
    KeysValues kv;
    size_t most = 0;
    for (int layer = 0; layer < s->n_encoder_layers; layer++) {
        size_t needed = shape_keys_values(&kv, s, model->encoder[layer].self.n_key_heads, longest);
        if (needed > most) most = needed;
    }
    float *buffer = allocate(most + LANES, sizeof(float));
    if (!buffer) return MH_NO_MEMORY;
    for (int index = 0; index < s->n_encoder_layers; index++) {
        const Layer *layer = model->encoder + index;
        const Attention *attention = &layer->self;
        const float *input = sublayer_input(work, &layer->self_norm, n_rows);
        multiply(work, &attention->in, input, n_rows, stride, work->wide, wide);
        float *rows = work->wide, *heads = work->heads;
        for (int i = 0; i < n_sentences; i++) {
            const int n_positions = sentences[i]->n_source, n_query = attention->n_heads * s->head_width;
            if (s->positions == ROTARY)
                for (int position = 0; position < n_positions; position++)
                    rotate(model, rows + (size_t)position * wide, attention->n_heads + attention->n_key_heads, position);
            shape_keys_values(&kv, s, attention->n_key_heads, n_positions);
            fill_keys_values(&kv, s, attention->n_key_heads, buffer, rows + n_query, wide);
            for (int position = 0; position < n_positions; position++)
                attend_keys_values(work, attention, rows + (size_t)position * wide, &kv, position,
                                   heads + (size_t)position * model->heads_stride);
            rows += (size_t)n_positions * wide;
            heads += (size_t)n_positions * model->heads_stride;
        }
        project_heads(work, attention, &layer->self_norm, n_rows);
        feed_forward(work, layer, n_rows);
    }
    release(buffer);
    const float *encoded = sublayer_input(work, &model->encoder_norm, n_rows);
    for (int index = 0; index < s->n_decoder_layers; index++) {
        const Attention *attention = &model->decoder[index].cross;
        multiply(work, &attention->keys_values, encoded, n_rows, stride, work->wide, wide);
        const float *rows = work->wide;
        for (int i = 0; i < n_sentences; i++) {
            const KeysValues *before = index ? sentences[i]->cross + index - 1 : NULL;
            float *at = sentences[i]->cross_buffer;
            if (before)
                at = before->values + (size_t)model->decoder[index - 1].cross.n_key_heads * before->n_positions *
                                          before->values_stride;
            fill_keys_values(sentences[i]->cross + index, s, attention->n_key_heads, at, rows, wide);
            rows += (size_t)sentences[i]->n_source * wide;
        }
    }
    return MH_OK;
}

static int cache_width(const Model *model, int layer)
{
    const Settings *s = &model->settings;
    return model->decoder[layer].self.n_key_heads * (s->head_width + s->value_width);
}

/* Self-attention of the newest position of every beam; its keys and values are added to the cache first. */
static void attend_generated(const Workspace *work, const Job *job, Sentence **sentences, int n_sentences, int index,
                             int n_rows)
{
    const Model *model = work->model;
    const Settings *s = &model->settings;
    const Layer *layer = model->decoder + index;
    const Attention *self = &layer->self;
    const int n_query = self->n_heads * s->head_width, width = cache_width(model, index), wide = model->wide_stride;
    multiply(work, &self->in, sublayer_input(work, &layer->self_norm, n_rows), n_rows, model->width_stride, work->wide,
             wide);
    float *row = work->wide, *heads = work->heads;
    for (int i = 0; i < n_sentences; i++) {
        Sentence *one = sentences[i];
        for (int beam = 0; beam < one->n_beams; beam++, row += wide) {
            if (s->positions == ROTARY) rotate(model, row, self->n_heads + self->n_key_heads, one->length);
            memcpy(one->cache[index] + ((size_t)one->length * job->beam + beam) * width, row + n_query,
                   width * sizeof(float));
        }
        row -= (size_t)one->n_beams * wide;
        for (int beam = 0; beam < one->n_beams; beam++, row += wide, heads += model->heads_stride)
            attend_cache(work, self, row, one->cache[index], width, job->beam,
                         one->ancestors + (size_t)beam * one->limit, one->length + 1, heads);
    }
    project_heads(work, self, &layer->self_norm, n_rows);
}

static void attend_source(const Workspace *work, Sentence **sentences, int n_sentences, int index, int n_rows)
{
    const Model *model = work->model;
    const Layer *layer = model->decoder + index;
    const Attention *cross = &layer->cross;
    multiply(work, &cross->in, sublayer_input(work, &layer->cross_norm, n_rows), n_rows, model->width_stride, work->wide,
             model->wide_stride);
    float *row = work->wide, *heads = work->heads;
    for (int i = 0; i < n_sentences; i++)
        for (int beam = 0; beam < sentences[i]->n_beams; beam++, row += model->wide_stride, heads += model->heads_stride)
            attend_keys_values(work, cross, row, sentences[i]->cross + index, 0, heads);
    project_heads(work, cross, &layer->cross_norm, n_rows);
}

/* The decoder's output for the newest position of every beam, one row each; grow_caches comes first. */
static const float *decode(const Workspace *work, const Job *job, Sentence **sentences, int n_sentences, int n_rows)
{
    const Model *model = work->model;
    float *row = work->x;
    for (int i = 0; i < n_sentences; i++) {
        Sentence *one = sentences[i];
        for (int beam = 0; beam < one->n_beams; beam++, row += model->width_stride) {
            const size_t start = (size_t)beam * one->limit;
            int id = one->length ? one->generated[start + one->length - 1] : model->settings.bos;
            embed(model, model->target_table, model->target_positions, id, one->length, row);
            one->ancestors[start + one->length] = (int16_t)beam;
        }
    }
    for (int index = 0; index < model->settings.n_decoder_layers; index++) {
        attend_generated(work, job, sentences, n_sentences, index, n_rows);
        attend_source(work, sentences, n_sentences, index, n_rows);
        feed_forward(work, model->decoder + index, n_rows);
    }
    return sublayer_input(work, &model->decoder_norm, n_rows);
}
