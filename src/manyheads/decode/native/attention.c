/* Attention of one query position at a time, over the encoder's keys and values or over a beam's cache. */
#include "engine.h"

/* Rotary positions: each pair of dimensions is rotated by the angle of its position. */
static void rotate(const Model *model, float *heads, int n_heads, int position)
{
    const int width = model->settings.head_width, n_pairs = width / 2;
    const float *sines = model->sines + (size_t)position * n_pairs;
    const float *cosines = model->cosines + (size_t)position * n_pairs;
    for (int head = 0; head < n_heads; head++, heads += width)
        for (int i = 0; i < n_pairs; i++) {
            float first = heads[2 * i], second = heads[2 * i + 1];
            heads[2 * i] = first * cosines[i] - second * sines[i];
            heads[2 * i + 1] = first * sines[i] + second * cosines[i];
        }
}

/* Softmax over n scores in place; the buffer is writable up to the next full vector. */
static void softmax(float *scores, int n)
{
    for (int i = n; i < ROUND_UP(n, LANES); i++) scores[i] = -INFINITY;
    vec most = splat(-INFINITY), total = {0};
    for (int i = 0; i < n; i += LANES) most = vector_max(load(scores + i), most);
    most = splat(horizontal_max(most));
    for (int i = 0; i < n; i += LANES) {
        vec power = exponential(load(scores + i) - most);
        store(scores + i, power);
        total += power;
    }
    vec by = splat(1 / horizontal_sum(total));
    for (int i = 0; i < n; i += LANES) store(scores + i, load(scores + i) * by);
}

/* Set the strides for `n_positions`; returns the number of floats that the keys and values take. */
static size_t shape_keys_values(KeysValues *kv, const Settings *s, int n_key_heads, int n_positions)
{
    kv->n_positions = n_positions;
    kv->keys_stride = ROUND_UP(n_positions, LANES);
    kv->values_stride = ROUND_UP(s->value_width, LANES);
    return (size_t)n_key_heads *
           ((size_t)s->head_width * kv->keys_stride + (size_t)n_positions * kv->values_stride);
}

static void fill_keys_values(KeysValues *kv, const Settings *s, int n_key_heads, float *buffer, const float *rows,
                             int row_stride)
{
    const int n_positions = kv->n_positions, keys_width = n_key_heads * s->head_width;
    kv->keys = buffer;
    kv->values = buffer + (size_t)keys_width * kv->keys_stride;
    for (int position = 0; position < n_positions; position++) {
        const float *keys = rows + (size_t)position * row_stride, *values = keys + keys_width;
        for (int i = 0; i < keys_width; i++) kv->keys[(size_t)i * kv->keys_stride + position] = keys[i];
        for (int head = 0; head < n_key_heads; head++)
            memcpy(kv->values + ((size_t)head * n_positions + position) * kv->values_stride,
                   values + head * s->value_width, s->value_width * sizeof(float));
    }
    for (int i = 0; i < keys_width; i++)
        for (int position = n_positions; position < kv->keys_stride; position++)
            kv->keys[(size_t)i * kv->keys_stride + position] = 0;
    if (kv->values_stride > s->value_width)
        for (size_t row = 0; row < (size_t)n_key_heads * n_positions; row++)
            memset(kv->values + row * kv->values_stride + s->value_width, 0,
                   (kv->values_stride - s->value_width) * sizeof(float));
}

/* The sum of n vectors, each times its weight; four accumulators hide the latency of the additions. */
INLINE vec weighted_sum(const float *weights, int n, const float *vectors, int stride)
{
    vec a = {0}, b = {0}, c = {0}, d = {0};
    int i = 0;
    for (; i + 4 <= n; i += 4, vectors += (size_t)4 * stride) {
        a += splat(weights[i]) * load(vectors);
        b += splat(weights[i + 1]) * load(vectors + stride);
        c += splat(weights[i + 2]) * load(vectors + 2 * (size_t)stride);
        d += splat(weights[i + 3]) * load(vectors + 3 * (size_t)stride);
    }
    for (; i < n; i++, vectors += stride) a += splat(weights[i]) * load(vectors);
    return (a + b) + (c + d);
}

/* One query position, every head, over keys and values; `position` is the query's, for ALiBi. */
static void attend_keys_values(const Workspace *work, const Attention *attention, const float *queries,
                               const KeysValues *kv, int position, float *heads)
{
    const Settings *s = &work->model->settings;
    const int n_positions = kv->n_positions;
    float *scores = work->scores;
    for (int head = 0; head < attention->n_heads; head++, queries += s->head_width, heads += s->value_width) {
        const float *keys = kv->keys + (size_t)attention->key_head[head] * s->head_width * kv->keys_stride;
        const float *values = kv->values + (size_t)attention->key_head[head] * n_positions * kv->values_stride;
        for (int i = 0; i < n_positions; i += LANES)
            store(scores + i, weighted_sum(queries, s->head_width, keys + i, kv->keys_stride));
        float slope = attention->slopes[head];
        if (slope != 0)
            for (int i = 0; i < n_positions; i++) scores[i] -= slope * abs(position - i);
        softmax(scores, n_positions);
        /* The last vector may reach beyond this head: into the next one, which is written later, or the padding. */
        for (int i = 0; i < kv->values_stride; i += LANES)
            store(heads + i, weighted_sum(scores, n_positions, values + i, kv->values_stride));
    }
}

/* One query position of a beam, every head, over the positions that the beam descends from. */
static void attend_cache(const Workspace *work, const Attention *attention, const float *queries, const float *cache,
                         int width, int n_beams, const int16_t *ancestors, int n_positions, float *heads)
{
    const Settings *s = &work->model->settings;
    const int n_heads = attention->n_heads, keys_width = attention->n_key_heads * s->head_width;
    const size_t scores_stride = ROUND_UP(n_positions, LANES);
    float *scores = work->scores;
    for (int position = 0; position < n_positions; position++) {
        const float *keys = cache + ((size_t)position * n_beams + ancestors[position]) * width;
        for (int head = 0; head < n_heads; head++) {
            const float *query = queries + head * s->head_width, *key = keys + attention->key_head[head] * s->head_width;
            vec sums = {0};
            int i = 0;
            for (; i + LANES <= s->head_width; i += LANES) sums += load(query + i) * load(key + i);
            float score = horizontal_sum(sums);
            for (; i < s->head_width; i++) score += query[i] * key[i];
            scores[head * scores_stride + position] = score - attention->slopes[head] * (n_positions - 1 - position);
        }
    }
    for (int head = 0; head < n_heads; head++) softmax(scores + head * scores_stride, n_positions);
    memset(heads, 0, (size_t)n_heads * s->value_width * sizeof(float));
    for (int position = 0; position < n_positions; position++) {
        const float *values = cache + ((size_t)position * n_beams + ancestors[position]) * width + keys_width;
        for (int head = 0; head < n_heads; head++) {
            const float *value = values + attention->key_head[head] * s->value_width;
            float weight = scores[head * scores_stride + position], *to = heads + head * s->value_width;
            int i = 0;
            for (; i + LANES <= s->value_width; i += LANES) store(to + i, load(to + i) + splat(weight) * load(value + i));
            for (; i < s->value_width; i++) to[i] += weight * value[i];
        }
    }
}
