/* A whole encoder-decoder and its search, in one call: sources in, hypotheses out.
 *
 * Greedy and beam search of manyheads/decode, over the model of manyheads/model, for one thread. What costs a small
 * model its time elsewhere is not done here at all: nothing is padded (rows are real tokens only), no cache is ever
 * moved (a beam knows its ancestors), and a sentence that is done makes room for the next at once, so that the
 * products always have many rows. Every row is computed in the same order of additions whatever stands beside it:
 * what a sentence becomes does not depend on its neighbours.
 *
 * Compiled where it runs, by building.py; described to it by packing.py, tensor by tensor in one fixed order.
 */
#include <alloca.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define LANES 16
#define MOST_ROWS 12 /* of a tile: with two vectors a row, what fits into the registers */
#elif defined(__AVX__)
#define LANES 8
#define MOST_ROWS 6
#else
#define LANES 4
#define MOST_ROWS 6
#endif
#define PANEL (2 * LANES) /* columns of a matrix that are stored together */
#define INLINE static inline __attribute__((always_inline))
#define ROUND_UP(n, m) (((n) + (m)-1) / (m) * (m))

typedef float vec __attribute__((vector_size(LANES * 4)));
typedef float loose __attribute__((vector_size(LANES * 4), aligned(4))); /* the same at any address */
typedef int32_t ivec __attribute__((vector_size(LANES * 4)));
typedef uint8_t bytevec __attribute__((vector_size(LANES)));

INLINE vec load(const float *from) { return *(const loose *)from; }
INLINE void store(float *to, vec x) { *(loose *)to = x; }
INLINE vec splat(float x) { return x - (vec){0}; }

INLINE vec larger(vec a, vec b)
{
    ivec is = a > b;
    return (vec)(((ivec)a & is) | ((ivec)b & ~is));
}

/* Halves onto halves: four steps that wait for one another, where one by one it would be sixteen. */
INLINE float sum_of(vec x)
{
#if LANES == 16
    return _mm512_reduce_add_ps((__m512)x);
#else
    for (int n = LANES / 2; n; n /= 2)
        for (int i = 0; i < n; i++) x[i] += x[i + n];
    return x[0];
#endif
}

INLINE float largest_of(vec x)
{
#if LANES == 16
    return _mm512_reduce_max_ps((__m512)x);
#else
    for (int n = LANES / 2; n; n /= 2)
        for (int i = 0; i < n; i++) x[i] = x[i] > x[i + n] ? x[i] : x[i + n];
    return x[0];
#endif
}

/* e^x to about one unit in the last place; 0 below -87. */
INLINE vec exponential(vec x)
{
    const float to_integer = 12582912.0f; /* 1.5 * 2^23: adding it leaves a whole number in the lowest bits */
    ivec is_small = x < splat(-87.0f);
    x = larger(x, splat(-87.0f));
    x = -larger(-x, splat(-88.0f));
    vec shifted = x * splat(1.44269504088896341f) + splat(to_integer);
    vec whole = shifted - splat(to_integer);
    vec rest = x - whole * splat(0.693359375f) - whole * splat(-2.12194440e-4f);
    vec power = splat(1.9875691500e-4f);
    power = power * rest + splat(1.3981999507e-3f);
    power = power * rest + splat(8.3334519073e-3f);
    power = power * rest + splat(4.1665795894e-2f);
    power = power * rest + splat(1.6666665459e-1f);
    power = power * rest + splat(5.0000001201e-1f);
    power = power * rest * rest + rest + splat(1.0f);
    ivec scale = ((ivec)shifted - (ivec)splat(to_integer) + 127) << 23;
    return (vec)((ivec)(power * (vec)scale) & ~is_small);
}

/* ---- What was given ---- */

typedef struct {
    int32_t vocab_size, width, inner_width, n_encoder_layers, n_decoder_layers, head_width, value_width;
    int32_t activation; /* 0 ReLU, 1 GELU, 2 SwiGLU */
    int32_t norm;       /* 0 layer, 1 root mean square, 2 none but weight and bias */
    int32_t norm_first, positions /* 0 added, 1 rotary, 2 ALiBi, 3 none */, n_places, begin, end, is_int8;
    float epsilon;
} Settings;

typedef struct {
    int n_in, n_out, n_panels, n_quads; /* quads: of four inputs each, of 8-bit products */
    float *weights;                     /* panel by panel, in each input by input */
    int8_t *bytes;                      /* the same in 8 bits, in each panel four inputs of a column side by side */
    float *scales;                      /* of each column's bytes */
    int32_t *sums;                      /* of each column's bytes, times 128 */
    float *bias;
} Matrix;

typedef struct {
    float *weight, *bias;
} Norm;

typedef struct {
    int n_heads, n_key_heads;
    int *key_head;      /* which key head each head reads */
    const float *slopes; /* ALiBi's */
    Matrix in, keys_values, out;
} Attention;

typedef struct {
    Attention self, cross;
    Matrix inner, outer;
    Norm around_self, around_cross, around_inner;
} Layer;

typedef struct {
    Settings settings;
    float *source_table, *target_table, *source_places, *target_places, *sines, *cosines;
    Layer *encoder, *decoder;
    Norm encoder_norm, decoder_norm;
    Matrix output;
    int width_room, wide_room, mixed_room; /* floats that a row needs: of the width, of the widest product, of heads */
    void **owned;
    int n_owned, n_owned_room;
} Model;

static void *own(Model *model, size_t n_bytes)
{
    void *room = NULL;
    if (posix_memalign(&room, 64, n_bytes ? n_bytes : 64)) return NULL;
    memset(room, 0, n_bytes);
    if (model->n_owned == model->n_owned_room) {
        model->n_owned_room = 2 * model->n_owned_room + 64;
        model->owned = realloc(model->owned, model->n_owned_room * sizeof(void *));
    }
    return model->owned[model->n_owned++] = room;
}

typedef struct {
    const float **tensors;
    const int64_t *sizes;
    int64_t n_tensors, at, is_wrong;
    const int32_t *counts; /* of heads */
} Given;

/* The next tensor, which must have so many numbers; an empty one is none. */
static const float *take(Given *given, int64_t size, int may_lack)
{
    if (given->at >= given->n_tensors) { given->is_wrong = given->at + 1; return NULL; }
    int64_t found = given->sizes[given->at];
    const float *tensor = given->tensors[given->at++];
    if (!found && may_lack) return NULL;
    if (found != size && !given->is_wrong) given->is_wrong = given->at;
    return found == size ? tensor : NULL;
}

static float *take_copy(Model *model, Given *given, int64_t size, int room, float padding)
{
    const float *from = take(given, size, 1);
    float *to = own(model, room * sizeof(float));
    for (int64_t i = 0; i < room; i++) to[i] = padding;
    if (from) memcpy(to, from, size * sizeof(float));
    return to;
}

/* So many rows of the width; NULL: there are none. */
static float *take_rows(Model *model, Given *given, int n_rows)
{
    const int width = model->settings.width, room = model->width_room;
    const float *from = take(given, (int64_t)n_rows * width, 1);
    if (!from) return NULL;
    float *to = own(model, (size_t)n_rows * room * sizeof(float));
    for (size_t row = 0; row < (size_t)n_rows; row++) memcpy(to + row * room, from + row * width, width * sizeof(float));
    return to;
}

static void take_norm(Model *model, Given *given, Norm *norm)
{
    int width = model->settings.width, room = model->width_room;
    norm->weight = take_copy(model, given, width, room, 0);
    norm->bias = take_copy(model, given, width, room, 0);
}

/* The nearest bytes to a column's numbers, and the scale that brings them back. */
static void quantise_column(Matrix *matrix, int column, const float *weights)
{
    float most = 0;
    for (int k = 0; k < matrix->n_in; k++) most = fmaxf(most, fabsf(weights[k]));
    float scale = most > 0 ? most / 127 : 1;
    int panel = column / PANEL, place = column % PANEL;
    int8_t *bytes = matrix->bytes + (size_t)panel * matrix->n_quads * 4 * PANEL;
    int32_t sum = 0;
    for (int k = 0; k < matrix->n_in; k++) {
        int byte = (int)lrintf(weights[k] / scale);
        bytes[(size_t)(k / 4) * 4 * PANEL + 4 * place + k % 4] = (int8_t)byte;
        sum += byte;
    }
    matrix->scales[column] = scale;
    matrix->sums[column] = 128 * sum;
}

static void take_matrix(Model *model, Given *given, Matrix *matrix, int n_out, int n_in, float padding)
{
    matrix->n_in = n_in;
    matrix->n_out = n_out;
    matrix->n_panels = ROUND_UP(n_out, PANEL) / PANEL;
    matrix->n_quads = ROUND_UP(n_in, 4) / 4;
    const float *from = take(given, (int64_t)n_out * n_in, 0);
    matrix->bias = take_copy(model, given, n_out, matrix->n_panels * PANEL, padding);
    if (padding != 0)
        for (int i = 0; i < n_out; i++) /* an output without bias of its own */
            if (matrix->bias[i] == padding) matrix->bias[i] = 0;
    if (!from) return;
    if (model->settings.is_int8) {
        int n_columns = matrix->n_panels * PANEL;
        matrix->bytes = own(model, (size_t)n_columns * matrix->n_quads * 4);
        matrix->scales = own(model, n_columns * sizeof(float));
        matrix->sums = own(model, n_columns * sizeof(int32_t));
        for (int column = 0; column < n_out; column++) quantise_column(matrix, column, from + (size_t)column * n_in);
        return;
    }
    matrix->weights = own(model, (size_t)matrix->n_panels * n_in * PANEL * sizeof(float));
    for (int column = 0; column < n_out; column++) {
        float *panel = matrix->weights + (size_t)(column / PANEL) * n_in * PANEL + column % PANEL;
        for (int k = 0; k < n_in; k++) panel[(size_t)k * PANEL] = from[(size_t)column * n_in + k];
    }
}

/* Some of a matrix's columns, as a matrix of its own in one room, which `weights` or `bytes` begins; 0: no memory. */
static int gather_columns(const Matrix *from, const int32_t *columns, int n_columns, Matrix *to)
{
    const int n_panels = ROUND_UP(n_columns, PANEL) / PANEL, n_room = n_panels * PANEL;
    const size_t n_bytes = from->bytes ? (size_t)n_room * from->n_quads * 4 : (size_t)n_room * from->n_in * sizeof(float);
    char *room = NULL;
    if (posix_memalign((void **)&room, 64, n_bytes + 3 * (size_t)n_room * sizeof(float))) return 0;
    *to = (Matrix){.n_in = from->n_in, .n_out = n_columns, .n_panels = n_panels, .n_quads = from->n_quads};
    to->bias = (float *)(room + n_bytes);
    to->scales = to->bias + n_room;
    to->sums = (int32_t *)(to->scales + n_room);
    if (from->bytes)
        to->bytes = (int8_t *)room;
    else
        to->weights = (float *)room;
    for (int i = 0; i < n_room; i++) { /* what pads the last panel repeats a column that can never be chosen */
        const int column = columns[i < n_columns ? i : n_columns - 1];
        to->bias[i] = i < n_columns ? from->bias[column] : -INFINITY;
        to->scales[i] = from->bytes ? from->scales[column] : 0;
        to->sums[i] = from->bytes ? from->sums[column] : 0;
    }
    /* A quad of bytes is as long as a float: both kinds lie panel by panel, in each row by row, PANEL beside another. */
    const int n_deep = from->bytes ? from->n_quads : from->n_in;
    const float *all = from->bytes ? (const float *)from->bytes : from->weights;
    for (int panel = 0; panel < n_panels; panel++) {
        const float *own[PANEL];
        float *into = (float *)room + (size_t)panel * n_deep * PANEL;
        for (int i = 0; i < PANEL; i++) {
            const int at = panel * PANEL + i, column = columns[at < n_columns ? at : n_columns - 1];
            own[i] = all + (size_t)(column / PANEL) * n_deep * PANEL + column % PANEL;
        }
        for (size_t k = 0; k < (size_t)n_deep; k++)
            for (int i = 0; i < PANEL; i++) memcpy(into + k * PANEL + i, own[i] + k * PANEL, sizeof(float));
    }
    return 1;
}

/* An attention: how many heads read each key head, then W^Q W^K W^V in one (or W^Q alone, and W^K W^V), then W^O. */
static void take_attention(Model *model, Given *given, Attention *attention, int is_cross)
{
    Settings *s = &model->settings;
    attention->n_key_heads = *given->counts++;
    attention->n_heads = 0;
    for (int key = 0; key < attention->n_key_heads; key++) attention->n_heads += given->counts[key];
    attention->key_head = own(model, attention->n_heads * sizeof(int));
    for (int key = 0, head = 0; key < attention->n_key_heads; key++, given->counts++)
        for (int i = 0; i < *given->counts; i++) attention->key_head[head++] = key;
    int n_query = attention->n_heads * s->head_width;
    int n_key_value = attention->n_key_heads * (s->head_width + s->value_width);
    attention->slopes = take_copy(model, given, attention->n_heads, attention->n_heads + 1, 0);
    if (is_cross) {
        take_matrix(model, given, &attention->in, n_query, s->width, 0);
        take_matrix(model, given, &attention->keys_values, n_key_value, s->width, 0);
    } else
        take_matrix(model, given, &attention->in, n_query + n_key_value, s->width, 0);
    take_matrix(model, given, &attention->out, s->width, attention->n_heads * s->value_width, 0);
}

static void take_layer(Model *model, Given *given, Layer *layer, int has_cross)
{
    Settings *s = &model->settings;
    take_attention(model, given, &layer->self, 0);
    take_norm(model, given, &layer->around_self);
    if (has_cross) {
        take_attention(model, given, &layer->cross, 1);
        take_norm(model, given, &layer->around_cross);
    }
    take_matrix(model, given, &layer->inner, s->inner_width * (s->activation == 2 ? 2 : 1), s->width, 0);
    take_matrix(model, given, &layer->outer, s->width, s->inner_width, 0);
    take_norm(model, given, &layer->around_inner);
    int widest = 0;
    const Matrix *all[] = {&layer->self.in, &layer->cross.in, &layer->cross.keys_values, &layer->inner};
    for (int i = 0; i < 4; i++) widest = all[i]->n_panels * PANEL > widest ? all[i]->n_panels * PANEL : widest;
    if (widest > model->wide_room) model->wide_room = widest;
    int n_heads = layer->self.n_heads > layer->cross.n_heads ? layer->self.n_heads : layer->cross.n_heads;
    int mixed = ROUND_UP(n_heads * s->value_width + LANES, PANEL);
    if (mixed > model->mixed_room) model->mixed_room = mixed;
}

void mh_free(Model *model)
{
    for (int i = 0; i < model->n_owned; i++) free(model->owned[i]);
    free(model->owned);
    free(model);
}

/* The model, packed; nothing where a tensor is not of the size the settings say, whose number is told. */
Model *mh_new(const Settings *settings, const float **tensors, const int64_t *sizes, int64_t n_tensors,
              const int32_t *counts, int64_t *wrong)
{
    Model *model = calloc(1, sizeof(Model));
    Given given = {tensors, sizes, n_tensors, 0, 0, counts};
    model->settings = *settings;
    Settings *s = &model->settings;
    int width_room = model->width_room = ROUND_UP(s->width, PANEL);
    model->source_table = take_rows(model, &given, s->vocab_size);
    model->target_table = take_rows(model, &given, s->vocab_size);
    model->source_places = take_rows(model, &given, s->n_places);
    model->target_places = take_rows(model, &given, s->n_places);
    take_matrix(model, &given, &model->output, s->vocab_size, s->width, -INFINITY);
    int64_t n_angles = (int64_t)s->n_places * (s->head_width / 2);
    model->sines = take_copy(model, &given, n_angles, n_angles, 0);
    model->cosines = take_copy(model, &given, n_angles, n_angles, 0);
    model->wide_room = width_room;
    model->encoder = own(model, s->n_encoder_layers * sizeof(Layer));
    model->decoder = own(model, s->n_decoder_layers * sizeof(Layer));
    for (int layer = 0; layer < s->n_encoder_layers; layer++) take_layer(model, &given, model->encoder + layer, 0);
    take_norm(model, &given, &model->encoder_norm);
    for (int layer = 0; layer < s->n_decoder_layers; layer++) take_layer(model, &given, model->decoder + layer, 1);
    take_norm(model, &given, &model->decoder_norm);
    *wrong = given.is_wrong ? given.is_wrong : given.at == n_tensors ? 0 : given.at + 1;
    if (*wrong) {
        mh_free(model);
        return NULL;
    }
    return model;
}

/* ---- Products ---- */

/* R rows by P panels, all sums in registers; each sum runs over the inputs in their order, whatever R and P are. */
INLINE void tile(const int R, const int P, int n_in, const float *x, int x_room, const float *panels,
                 const float *bias, float *y, int y_room)
{
    const size_t panel_size = (size_t)n_in * PANEL;
    vec sums[MOST_ROWS][8];
#pragma GCC unroll 12
    for (int r = 0; r < R; r++)
#pragma GCC unroll 8
        for (int p = 0; p < 2 * P; p++) sums[r][p] = (vec){0};
    for (int k = 0; k < n_in; k++) {
        vec column[8];
#pragma GCC unroll 8
        for (int p = 0; p < 2 * P; p++)
            column[p] = load(panels + (p / 2) * panel_size + (size_t)k * PANEL + (p % 2) * LANES);
#pragma GCC unroll 12
        for (int r = 0; r < R; r++) {
            vec value = splat(x[(size_t)r * x_room + k]);
#pragma GCC unroll 8
            for (int p = 0; p < 2 * P; p++) sums[r][p] += value * column[p];
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < R; r++)
#pragma GCC unroll 8
        for (int p = 0; p < 2 * P; p++) store(y + (size_t)r * y_room + p * LANES, sums[r][p] + load(bias + p * LANES));
}

#define TILE(R, P)                                                                                                  \
    static void tile_##R##_##P(int n_in, const float *x, int x_room, const float *panels, const float *bias,        \
                               float *y, int y_room)                                                                \
    {                                                                                                               \
        tile(R, P, n_in, x, x_room, panels, bias, y, y_room);                                                       \
    }
TILE(1, 4) TILE(1, 1) TILE(2, 2) TILE(2, 1) TILE(3, 1) TILE(4, 1) TILE(5, 1) TILE(6, 1)
#if MOST_ROWS == 12
TILE(3, 2) TILE(4, 2) TILE(7, 1) TILE(8, 1) TILE(9, 1) TILE(10, 1) TILE(11, 1) TILE(12, 1)
#endif

typedef void Tile(int, const float *, int, const float *, const float *, float *, int);
static Tile *const ONE_PANEL[] = {NULL, tile_1_1, tile_2_1, tile_3_1, tile_4_1, tile_5_1, tile_6_1,
#if MOST_ROWS == 12
                                  tile_7_1, tile_8_1, tile_9_1, tile_10_1, tile_11_1, tile_12_1
#endif
};
static Tile *const MORE_PANELS[] = {NULL, tile_1_4, tile_2_2,
#if MOST_ROWS == 12
                                    tile_3_2, tile_4_2
#endif
};
static const int N_PANELS[] = {1, 4, 2, 2, 2};
#define MOST_WITH_MORE_PANELS ((int)(sizeof(MORE_PANELS) / sizeof(*MORE_PANELS)) - 1)

static void multiply_floats(const Matrix *m, const float *x, int n_rows, int x_room, float *y, int y_room)
{
    const size_t panel_size = (size_t)m->n_in * PANEL;
    if (n_rows <= MOST_WITH_MORE_PANELS) { /* few rows: several panels at once, or each sum waits for itself */
        int step = N_PANELS[n_rows], panel = 0;
        for (; panel + step <= m->n_panels; panel += step)
            MORE_PANELS[n_rows](m->n_in, x, x_room, m->weights + panel * panel_size, m->bias + panel * PANEL,
                                y + panel * PANEL, y_room);
        for (; panel < m->n_panels; panel++)
            ONE_PANEL[n_rows](m->n_in, x, x_room, m->weights + panel * panel_size, m->bias + panel * PANEL,
                              y + panel * PANEL, y_room);
        return;
    }
    for (int panel = 0; panel < m->n_panels; panel++) {
        int n_tiles = (n_rows + MOST_ROWS - 1) / MOST_ROWS;
        for (int i = 0, row = 0; i < n_tiles; i++) { /* tiles of like height: 13 rows are 7 and 6, not 12 and 1 */
            int height = (n_rows - row + n_tiles - i - 1) / (n_tiles - i);
            ONE_PANEL[height](m->n_in, x + (size_t)row * x_room, x_room, m->weights + panel * panel_size,
                              m->bias + panel * PANEL, y + (size_t)row * y_room + panel * PANEL, y_room);
            row += height;
        }
    }
}

/* ---- What happens to rows ---- */

/* Room for one call's work; `rows` of the vectors that are passed on, of what they are changed into, and so on. */
typedef struct {
    const Model *model;
    int n_rows_room;
    float *x, *normed, *wide, *mixed, *change, *scores;
    uint8_t *bytes; /* of rows in 8 bits */
    float *byte_scales;
    const Matrix *output;         /* the model's, or the columns that a job asks for */
    const int32_t *never;         /* columns of it that may not be written */
    int n_never;
} Work;

/* Sums of four products of bytes in every lane: whole numbers, the same on every processor. Where the processor takes
 * the first factor without sign, it has OFFSET added, and the column's sums are taken away again afterwards. */
#if defined(__AVX512VNNI__)
#define OFFSET 128
INLINE ivec add_products(ivec sums, ivec x, ivec w)
{
    return (ivec)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)x, (__m512i)w);
}
#elif defined(__AVXVNNI__) && LANES == 8
#define OFFSET 128
INLINE ivec add_products(ivec sums, ivec x, ivec w)
{
    return (ivec)_mm256_dpbusd_avx_epi32((__m256i)sums, (__m256i)x, (__m256i)w);
}
#elif defined(__AVX2__)
#define OFFSET 0
INLINE __m256i products_of(__m256i x, __m256i w)
{
    __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)); /* never beyond 16 bits */
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
INLINE ivec add_products(ivec sums, ivec x, ivec w)
{
    union { ivec all; __m256i parts[LANES / 8]; } a = {x}, b = {w};
    for (int i = 0; i < LANES / 8; i++) a.parts[i] = products_of(a.parts[i], b.parts[i]);
    return sums + a.all;
}
#else
#define OFFSET 0
INLINE ivec add_products(ivec sums, ivec x, ivec w)
{
    union { ivec all; int8_t bytes[4 * LANES]; } a = {x}, b = {w};
    for (int i = 0; i < 4 * LANES; i++) sums[i / 4] += a.bytes[i] * b.bytes[i];
    return sums;
}
#endif

/* As `tile`, of bytes: R rows by P panels. */
INLINE void byte_tile(const int R, const int P, const Matrix *m, int panel, const uint8_t *x, const float *x_scales,
                      float *y, int y_room)
{
    const size_t row_size = (size_t)m->n_quads * 4, panel_size = row_size * PANEL;
    const int8_t *panels = m->bytes + panel * panel_size;
    ivec sums[MOST_ROWS][8];
#pragma GCC unroll 12
    for (int r = 0; r < R; r++)
#pragma GCC unroll 8
        for (int p = 0; p < 2 * P; p++) sums[r][p] = (ivec){0};
    for (int k = 0; k < m->n_quads; k++) {
        ivec column[8];
#pragma GCC unroll 8
        for (int p = 0; p < 2 * P; p++)
            column[p] = (ivec)load((const float *)(panels + (p / 2) * panel_size + ((size_t)k * PANEL + (p % 2) * LANES) * 4));
#pragma GCC unroll 12
        for (int r = 0; r < R; r++) {
            int32_t quad;
            memcpy(&quad, x + r * row_size + 4 * k, 4);
            ivec value = quad - (ivec){0};
#pragma GCC unroll 8
            for (int p = 0; p < 2 * P; p++) sums[r][p] = add_products(sums[r][p], value, column[p]);
        }
    }
    const int first = panel * PANEL;
#pragma GCC unroll 12
    for (int r = 0; r < R; r++)
#pragma GCC unroll 8
        for (int p = 0; p < 2 * P; p++) {
            const int at = first + p * LANES;
            ivec sum = OFFSET ? sums[r][p] - (ivec)load((const float *)(m->sums + at)) : sums[r][p];
            vec value = __builtin_convertvector(sum, vec) * (splat(x_scales[r]) * load(m->scales + at));
            store(y + (size_t)r * y_room + p * LANES, value + load(m->bias + at));
        }
}

#define BYTE_TILE(R, P)                                                                                             \
    static void byte_tile_##R##_##P(const Matrix *m, int panel, const uint8_t *x, const float *scales, float *y,    \
                                    int y_room)                                                                     \
    {                                                                                                               \
        byte_tile(R, P, m, panel, x, scales, y, y_room);                                                            \
    }
BYTE_TILE(1, 4) BYTE_TILE(1, 1) BYTE_TILE(2, 2) BYTE_TILE(2, 1) BYTE_TILE(3, 1) BYTE_TILE(4, 1) BYTE_TILE(5, 1)
BYTE_TILE(6, 1)
#if MOST_ROWS == 12
BYTE_TILE(3, 2) BYTE_TILE(4, 2) BYTE_TILE(7, 1) BYTE_TILE(8, 1) BYTE_TILE(9, 1) BYTE_TILE(10, 1) BYTE_TILE(11, 1)
BYTE_TILE(12, 1)
#endif

typedef void ByteTile(const Matrix *, int, const uint8_t *, const float *, float *, int);
static ByteTile *const ONE_BYTE_PANEL[] = {NULL, byte_tile_1_1, byte_tile_2_1, byte_tile_3_1, byte_tile_4_1,
                                           byte_tile_5_1, byte_tile_6_1,
#if MOST_ROWS == 12
                                           byte_tile_7_1, byte_tile_8_1, byte_tile_9_1, byte_tile_10_1,
                                           byte_tile_11_1, byte_tile_12_1
#endif
};
static ByteTile *const MORE_BYTE_PANELS[] = {NULL, byte_tile_1_4, byte_tile_2_2,
#if MOST_ROWS == 12
                                             byte_tile_3_2, byte_tile_4_2
#endif
};

/* Each row's nearest bytes, and the scale that brings them back: its largest number becomes 127. */
static void quantise_rows(const float *x, int n_rows, int x_room, int n, uint8_t *bytes, float *scales)
{
    const int size = ROUND_UP(n, 4);
    for (int row = 0; row < n_rows; row++, x += x_room, bytes += size) {
        vec most = {0};
        int i = 0;
        for (; i + LANES <= n; i += LANES) most = larger(larger(load(x + i), -load(x + i)), most);
        float largest = largest_of(most);
        for (; i < n; i++) largest = fmaxf(largest, fabsf(x[i]));
        float by = largest > 0 ? 127 / largest : 0;
        scales[row] = largest / 127;
        const vec to_integer = splat(12582912.0f); /* rounds to the nearest whole number, as in `exponential` */
        for (i = 0; i + LANES <= n; i += LANES) {
            ivec whole = (ivec)(load(x + i) * splat(by) + to_integer) - (ivec)to_integer + OFFSET;
            bytevec narrow = __builtin_convertvector(whole, bytevec);
            memcpy(bytes + i, &narrow, LANES);
        }
        for (; i < n; i++) bytes[i] = (uint8_t)((int)lrintf(x[i] * by) + OFFSET);
        for (; i < size; i++) bytes[i] = 0;
    }
}

static void multiply_bytes(const Work *work, const Matrix *m, const float *x, int n_rows, int x_room, float *y,
                           int y_room)
{
    const size_t row_size = (size_t)m->n_quads * 4;
    quantise_rows(x, n_rows, x_room, m->n_in, work->bytes, work->byte_scales);
    if (n_rows <= MOST_WITH_MORE_PANELS) {
        int step = N_PANELS[n_rows], panel = 0;
        for (; panel + step <= m->n_panels; panel += step)
            MORE_BYTE_PANELS[n_rows](m, panel, work->bytes, work->byte_scales, y + panel * PANEL, y_room);
        for (; panel < m->n_panels; panel++)
            ONE_BYTE_PANEL[n_rows](m, panel, work->bytes, work->byte_scales, y + panel * PANEL, y_room);
        return;
    }
    for (int panel = 0; panel < m->n_panels; panel++) {
        int n_tiles = (n_rows + MOST_ROWS - 1) / MOST_ROWS;
        for (int i = 0, row = 0; i < n_tiles; i++) {
            int height = (n_rows - row + n_tiles - i - 1) / (n_tiles - i);
            ONE_BYTE_PANEL[height](m, panel, work->bytes + row * row_size, work->byte_scales + row,
                                   y + (size_t)row * y_room + panel * PANEL, y_room);
            row += height;
        }
    }
}

static void multiply(const Work *work, const Matrix *m, const float *x, int n_rows, int x_room, float *y, int y_room)
{
    if (m->bytes)
        multiply_bytes(work, m, x, n_rows, x_room, y, y_room);
    else
        multiply_floats(m, x, n_rows, x_room, y, y_room);
}

/* Every row normalized by itself; what pads a row stays 0. */
static void normalize(const Model *model, const Norm *norm, const float *from, float *to, int n_rows)
{
    const Settings *s = &model->settings;
    const int width = s->width, room = model->width_room, n_padding = room - width;
    for (int row = 0; row < n_rows; row++, from += room, to += room) {
        vec mean = {0}, by = splat(1);
        if (s->norm == 0) {
            vec sum = {0};
            for (int i = 0; i < room; i += LANES) sum += load(from + i);
            mean = splat(sum_of(sum) / width);
        }
        if (s->norm < 2) {
            vec squares = {0};
            for (int i = 0; i < room; i += LANES) {
                vec difference = load(from + i) - mean;
                squares += difference * difference;
            }
            float spread = (sum_of(squares) - n_padding * mean[0] * mean[0]) / width;
            by = splat(1 / sqrtf(spread + s->epsilon));
        }
        for (int i = 0; i < room; i += LANES)
            store(to + i, (load(from + i) - mean) * by * load(norm->weight + i) + load(norm->bias + i));
    }
}

INLINE vec logistic(vec x) { return splat(1) / (splat(1) + exponential(-x)); }

/* x/2 (1 + erf(x/sqrt 2)), erf to 1.5e-7 (Abramowitz and Stegun 7.1.26). */
INLINE vec gelu(vec x)
{
    vec size = larger(x, -x) * splat(0.70710678118654752f);
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

/* In place: the first `inner_width` numbers of each row are what the outer matrix reads. */
static void activate(const Settings *s, float *rows, int n_rows, int room)
{
    const int width = s->inner_width;
    for (int row = 0; row < n_rows; row++, rows += room) {
        if (s->activation == 2) { /* first the gates, then what they let through */
            int i = 0;
            for (; i + LANES <= width; i += LANES) {
                vec gate = load(rows + i);
                store(rows + i, gate * logistic(gate) * load(rows + width + i));
            }
            for (; i < width; i++) rows[i] = rows[i] / (1 + expf(-rows[i])) * rows[width + i];
        } else /* what pads a row may be changed too: nobody reads it */
            for (int i = 0; i < width; i += LANES) {
                vec x = load(rows + i);
                store(rows + i, s->activation ? gelu(x) : larger(x, splat(0)));
            }
    }
}

/* Rotary positions: each pair of numbers turned by its place's angle. */
static void rotate(const Model *model, float *heads, int n_heads, int place)
{
    const int width = model->settings.head_width, n_pairs = width / 2;
    const float *sines = model->sines + (size_t)place * n_pairs, *cosines = model->cosines + (size_t)place * n_pairs;
    for (int head = 0; head < n_heads; head++, heads += width)
        for (int i = 0; i < n_pairs; i++) {
            float first = heads[2 * i], second = heads[2 * i + 1];
            heads[2 * i] = first * cosines[i] - second * sines[i];
            heads[2 * i + 1] = first * sines[i] + second * cosines[i];
        }
}

/* Softmax over n scores; there is room, and no meaning, up to the next full vector. */
static void soften(float *scores, int n)
{
    for (int i = n; i < ROUND_UP(n, LANES); i++) scores[i] = -INFINITY;
    vec most = splat(-INFINITY), total = {0};
    for (int i = 0; i < n; i += LANES) most = larger(load(scores + i), most);
    most = splat(largest_of(most));
    for (int i = 0; i < n; i += LANES) {
        vec power = exponential(load(scores + i) - most);
        store(scores + i, power);
        total += power;
    }
    vec by = splat(1 / sum_of(total));
    for (int i = 0; i < n; i += LANES) store(scores + i, load(scores + i) * by);
}

/* ---- Attention ---- */

/* Keys turned on their side (key head, number, place) and values (key head, place, number), padded to full vectors. */
typedef struct {
    int n_places, keys_room, values_room;
    float *keys, *values;
} Memory;

static size_t shape_memory(Memory *memory, const Settings *s, int n_key_heads, int n_places)
{
    memory->n_places = n_places;
    memory->keys_room = ROUND_UP(n_places, LANES);
    memory->values_room = ROUND_UP(s->value_width, LANES);
    return (size_t)n_key_heads * (s->head_width * memory->keys_room + n_places * memory->values_room);
}

static void fill_memory(Memory *memory, const Settings *s, int n_key_heads, float *room, const float *keys_values,
                        int row_room)
{
    const int n_places = memory->n_places, keys_width = n_key_heads * s->head_width;
    memory->keys = room;
    memory->values = room + (size_t)keys_width * memory->keys_room;
    for (int place = 0; place < n_places; place++) {
        const float *keys = keys_values + (size_t)place * row_room, *values = keys + keys_width;
        for (int i = 0; i < keys_width; i++) memory->keys[(size_t)i * memory->keys_room + place] = keys[i];
        for (int head = 0; head < n_key_heads; head++)
            memcpy(memory->values + ((size_t)head * n_places + place) * memory->values_room,
                   values + head * s->value_width, s->value_width * sizeof(float));
    }
    for (int i = 0; i < keys_width; i++)
        for (int place = n_places; place < memory->keys_room; place++)
            memory->keys[(size_t)i * memory->keys_room + place] = 0;
    if (memory->values_room > s->value_width)
        for (int row = 0; row < n_key_heads * n_places; row++)
            memset(memory->values + (size_t)row * memory->values_room + s->value_width, 0,
                   (memory->values_room - s->value_width) * sizeof(float));
}

/* The sum of n vectors, each times its weight; in four sums, so that none waits for the one before it. */
INLINE vec weigh(const float *weights, int n, const float *vectors, int room)
{
    vec a = {0}, b = {0}, c = {0}, d = {0};
    int i = 0;
    for (; i + 4 <= n; i += 4, vectors += (size_t)4 * room) {
        a += splat(weights[i]) * load(vectors);
        b += splat(weights[i + 1]) * load(vectors + room);
        c += splat(weights[i + 2]) * load(vectors + 2 * (size_t)room);
        d += splat(weights[i + 3]) * load(vectors + 3 * (size_t)room);
    }
    for (; i < n; i++, vectors += room) a += splat(weights[i]) * load(vectors);
    return (a + b) + (c + d);
}

/* One query place, every head, over a memory; `place` tells ALiBi where it stands. */
static void attend_memory(const Work *work, const Attention *attention, const float *queries, const Memory *memory,
                          int place, float *mixed)
{
    const Settings *s = &work->model->settings;
    const int n_places = memory->n_places;
    float *scores = work->scores;
    for (int head = 0; head < attention->n_heads; head++, queries += s->head_width, mixed += s->value_width) {
        const float *keys = memory->keys + (size_t)attention->key_head[head] * s->head_width * memory->keys_room;
        const float *values = memory->values + (size_t)attention->key_head[head] * n_places * memory->values_room;
        for (int i = 0; i < n_places; i += LANES)
            store(scores + i, weigh(queries, s->head_width, keys + i, memory->keys_room));
        float slope = attention->slopes[head];
        if (slope != 0)
            for (int i = 0; i < n_places; i++) scores[i] -= slope * abs(place - i);
        soften(scores, n_places);
        for (int i = 0; i < memory->values_room; i += LANES) /* may write beyond the head: the next one, or room */
            store(mixed + i, weigh(scores, n_places, values + i, memory->values_room));
    }
}

/* norm(x + change) or x + change, as the settings put the norm. */
static void add_change(const Work *work, const Norm *norm, int n_rows)
{
    const int room = work->model->width_room;
    for (size_t i = 0; i < (size_t)n_rows * room; i += LANES) store(work->x + i, load(work->x + i) + load(work->change + i));
    if (!work->model->settings.norm_first) normalize(work->model, norm, work->x, work->x, n_rows);
}

/* What a sub-layer reads: norm(x) or x. */
static const float *prepare(const Work *work, const Norm *norm, int n_rows)
{
    if (!work->model->settings.norm_first) return work->x;
    normalize(work->model, norm, work->x, work->normed, n_rows);
    return work->normed;
}

static void feed_forward(const Work *work, const Layer *layer, int n_rows)
{
    const Model *model = work->model;
    const float *read = prepare(work, &layer->around_inner, n_rows);
    multiply(work, &layer->inner, read, n_rows, model->width_room, work->wide, model->wide_room);
    activate(&model->settings, work->wide, n_rows, model->wide_room);
    multiply(work, &layer->outer, work->wide, n_rows, model->wide_room, work->change, model->width_room);
    add_change(work, &layer->around_inner, n_rows);
}

/* W^O of what the heads mixed, onto the residual path; an attention without heads adds its bias, if it has one. */
static void mix_heads(const Work *work, const Attention *attention, const Norm *norm, int n_rows)
{
    multiply(work, &attention->out, work->mixed, n_rows, work->model->mixed_room, work->change, work->model->width_room);
    add_change(work, norm, n_rows);
}

static void embed(const Model *model, const float *table, const float *places, int id, int place, float *to)
{
    const int room = model->width_room;
    const float *word = table + (size_t)id * room;
    memcpy(to, word, room * sizeof(float));
    if (!places) return;
    places += (size_t)place * room;
    for (int i = 0; i < room; i += LANES) store(to + i, load(word + i) + load(places + i));
}

/* ---- Search ---- */

typedef struct {
    int n_ids, is_finished;
    float log_probability, score;
    int32_t *ids;
} Found;

typedef struct {
    int index, n_source, limit, length, n_beams, n_found, n_places_room;
    float longest;       /* the length penalty at the limit */
    float *memory_room;  /* of all layers */
    Memory *memories;    /* one a decoder layer */
    float **cache;       /* one a decoder layer: (place, beam, keys and values) */
    int16_t *ancestors, *other_ancestors; /* (beam, place): which beam stood there */
    int32_t *written, *other_written;     /* (beam, place) */
    float *totals;       /* log-probability of each beam */
    Found *found;        /* best first */
    int32_t *found_room; /* of their ids */
} Sentence;

typedef struct {
    int64_t n_sentences;
    const int32_t *ids;      /* of all sources, one after another */
    const int64_t *starts;   /* where each begins in them; one more at the end */
    const int32_t *limits;   /* ids that may be written, EOS too; at least 1 */
    const int32_t *never;
    int32_t n_never, beam, n_best, n_rows; /* rows: how many beams may stand side by side */
    float length_penalty;
    /* What was found: of each sentence n_best times; ids at n_best times the sum of the limits before it. */
    const int64_t *answer_starts;
    int32_t *answers, *n_answers, *answer_lengths, *are_finished;
    float *log_probabilities;
    volatile int32_t *stop; /* set by another thread: come back soon, with nothing */
    const int32_t *outputs; /* the ids that may be written, sorted, each once, EOS among them */
    int32_t n_outputs;      /* 0: all ids */
} Job;

static float penalty(int length, float alpha) { return (float)pow((5.0 + length) / 6.0, alpha); }

/* Keep a hypothesis if it is among the n best; finished ones go before those that were cut off. */
static void note(const Job *job, Sentence *sentence, const int32_t *ids, int n_ids, int last, float log_probability,
                 int counted, int is_finished)
{
    float score = log_probability / penalty(counted, job->length_penalty);
    int at = sentence->n_found;
    while (at > 0 && score > sentence->found[at - 1].score) at--;
    if (at >= job->n_best) return;
    int32_t *room = sentence->n_found < job->n_best ? sentence->found[sentence->n_found].ids
                                                    : sentence->found[job->n_best - 1].ids;
    int n_behind = (sentence->n_found < job->n_best ? sentence->n_found : job->n_best - 1) - at;
    memmove(sentence->found + at + 1, sentence->found + at, n_behind * sizeof(Found));
    memcpy(room, ids, n_ids * sizeof(int32_t));
    if (last >= 0) room[n_ids++] = last;
    sentence->found[at] = (Found){n_ids, is_finished, log_probability, score, room};
    if (sentence->n_found < job->n_best) sentence->n_found++;
}

/* The k largest of n numbers, best first; of equals, the one that stands first. n is a whole number of vectors. */
static int choose_largest(const float *from, int n, int k, float *values, int *places)
{
    int n_chosen = 0;
    float least = -INFINITY;
    for (int start = 0; start < n; start += LANES) {
        ivec is = load(from + start) > splat(least);
#if LANES == 16
        if (!_mm512_test_epi32_mask((__m512i)is, (__m512i)is)) continue;
#elif LANES == 8 && defined(__AVX__)
        if (!_mm256_movemask_ps((__m256)is)) continue;
#else
        int any = 0;
        for (int i = 0; i < LANES; i++) any |= is[i];
        if (!any) continue;
#endif
        for (int i = start; i < start + LANES; i++) {
            if (!(from[i] > least)) continue;
            int at = n_chosen < k ? n_chosen++ : k - 1;
            for (; at > 0 && from[i] > values[at - 1]; at--) values[at] = values[at - 1], places[at] = places[at - 1];
            values[at] = from[i];
            places[at] = i;
            if (n_chosen == k) least = values[k - 1];
        }
    }
    return n_chosen;
}

/* The sum of e^(x - less) over n numbers; -inf among them counts nothing. n is a whole number of vectors. */
static float sum_of_powers(const float *from, int n, float less)
{
    vec one = {0}, other = {0};
    for (int i = 0; i < n; i += PANEL) {
        one += exponential(load(from + i) - splat(less));
        other += exponential(load(from + i + LANES) - splat(less));
    }
    return sum_of(one + other);
}

typedef struct {
    float total;
    int beam, id;
} Candidate;

/* A sentence one step further, from the best continuations of its beams; whether it is done. */
static int advance(const Model *model, const Job *job, Sentence *sentence, const float *gains, const int *ids,
                   const int *n_choices)
{
    const int end = model->settings.end, n_most = job->beam, limit = sentence->limit;
    Candidate *best = alloca(n_most * sizeof(Candidate));
    int n_best = 0;
    for (int beam = 0; beam < sentence->n_beams; beam++)
        for (int i = 0; i < n_choices[beam]; i++) {
            Candidate one = {sentence->totals[beam] + gains[beam * n_most + i], beam, ids[beam * n_most + i]};
            if (!(one.total > -INFINITY)) continue; /* a NaN neither */
            int at = n_best < n_most ? n_best++ : one.total > best[n_most - 1].total ? n_most - 1 : -1;
            if (at < 0) break;
            for (; at > 0 && one.total > best[at - 1].total; at--) best[at] = best[at - 1];
            best[at] = one;
        }
    const int length = ++sentence->length;
    if (!n_best) { /* no continuation is possible: what was written must do */
        if (!sentence->n_found)
            for (int beam = 0; beam < sentence->n_beams; beam++)
                note(job, sentence, sentence->written + (size_t)beam * limit, length - 1, -1, sentence->totals[beam],
                     length - 1, 0);
        return 1;
    }
    int n_beams = 0;
    for (int i = 0; i < n_best; i++) {
        const int32_t *written = sentence->written + (size_t)best[i].beam * limit;
        if (best[i].id == end) {
            note(job, sentence, written, length - 1, -1, best[i].total, length, 1);
            continue;
        }
        int32_t *to = sentence->other_written + (size_t)n_beams * limit;
        memcpy(to, written, (length - 1) * sizeof(int32_t));
        to[length - 1] = best[i].id;
        int16_t *ancestors = sentence->other_ancestors + (size_t)n_beams * limit;
        memcpy(ancestors, sentence->ancestors + (size_t)best[i].beam * limit, (length - 1) * sizeof(int16_t));
        ancestors[length - 1] = (int16_t)best[i].beam;
        sentence->totals[n_beams++] = best[i].total; /* best is sorted: totals are read no more */
    }
    int16_t *ancestors = sentence->ancestors;
    int32_t *written = sentence->written;
    sentence->ancestors = sentence->other_ancestors, sentence->other_ancestors = ancestors;
    sentence->written = sentence->other_written, sentence->other_written = written;
    sentence->n_beams = n_beams;
    /* No continuation can score more than its beam has now, at the penalty of the limit: as in beam.py. */
    float kept = sentence->n_found < job->n_best ? -INFINITY : sentence->found[job->n_best - 1].score;
    int is_done = !n_beams || length >= limit ||
                  (sentence->n_found == job->n_best && kept >= sentence->totals[0] / sentence->longest);
    if (is_done && !sentence->n_found)
        for (int beam = 0; beam < n_beams; beam++)
            note(job, sentence, sentence->written + (size_t)beam * limit, length, -1, sentence->totals[beam], length, 0);
    return is_done;
}

/* ---- One call ---- */

static int cache_width(const Model *model, int layer)
{
    const Settings *s = &model->settings;
    return model->decoder[layer].self.n_key_heads * (s->head_width + s->value_width);
}

static void close_sentence(const Model *model, Sentence *sentence)
{
    if (!sentence) return;
    for (int layer = 0; sentence->cache && layer < model->settings.n_decoder_layers; layer++) free(sentence->cache[layer]);
    void *rooms[] = {sentence->cache, sentence->memory_room, sentence->memories, sentence->ancestors,
                     sentence->other_ancestors, sentence->written, sentence->other_written, sentence->totals,
                     sentence->found, sentence->found_room, sentence};
    for (size_t i = 0; i < sizeof(rooms) / sizeof(*rooms); i++) free(rooms[i]);
}

/* A sentence with nothing written, and room for what it will need; NULL: there is no memory left. */
static Sentence *open_sentence(const Model *model, const Job *job, int index)
{
    const Settings *s = &model->settings;
    Sentence *sentence = calloc(1, sizeof(Sentence));
    if (!sentence) return NULL;
    sentence->index = index;
    sentence->n_source = (int)(job->starts[index + 1] - job->starts[index]);
    const size_t limit = sentence->limit = job->limits[index];
    sentence->longest = penalty(sentence->limit, job->length_penalty);
    sentence->n_beams = 1;
    sentence->memories = calloc(s->n_decoder_layers, sizeof(Memory));
    sentence->cache = calloc(s->n_decoder_layers, sizeof(float *));
    size_t n_floats = 0;
    for (int layer = 0; sentence->memories && layer < s->n_decoder_layers; layer++)
        n_floats += shape_memory(sentence->memories + layer, s, model->decoder[layer].cross.n_key_heads, sentence->n_source);
    sentence->memory_room = malloc(n_floats * sizeof(float) + 64);
    sentence->ancestors = malloc(job->beam * limit * sizeof(int16_t));
    sentence->other_ancestors = malloc(job->beam * limit * sizeof(int16_t));
    sentence->written = malloc(job->beam * limit * sizeof(int32_t));
    sentence->other_written = malloc(job->beam * limit * sizeof(int32_t));
    sentence->totals = calloc(job->beam, sizeof(float));
    sentence->found = calloc(job->n_best, sizeof(Found));
    sentence->found_room = malloc(job->n_best * limit * sizeof(int32_t));
    if (!sentence->memories || !sentence->cache || !sentence->memory_room || !sentence->ancestors ||
        !sentence->other_ancestors || !sentence->written || !sentence->other_written || !sentence->totals ||
        !sentence->found || !sentence->found_room) {
        close_sentence(model, sentence);
        return NULL;
    }
    for (int i = 0; i < job->n_best; i++) sentence->found[i].ids = sentence->found_room + i * limit;
    return sentence;
}

/* Room in the caches for one more place. */
static int grow_caches(const Model *model, const Job *job, Sentence *sentence)
{
    if (sentence->length < sentence->n_places_room) return 1;
    int n_places = sentence->n_places_room ? 2 * sentence->n_places_room : 16;
    if (n_places > sentence->limit) n_places = sentence->limit;
    for (int layer = 0; layer < model->settings.n_decoder_layers; layer++) {
        size_t n_floats = (size_t)n_places * job->beam * cache_width(model, layer) + LANES;
        float *room = realloc(sentence->cache[layer], n_floats * sizeof(float));
        if (!room) return 0;
        sentence->cache[layer] = room;
    }
    sentence->n_places_room = n_places;
    return 1;
}

/* Encode some sentences, all their tokens in one stack of rows, and keep what the decoder will look at. */
static int encode(const Work *work, const Job *job, Sentence **sentences, int n_sentences)
{
    const Model *model = work->model;
    const Settings *s = &model->settings;
    const int room = model->width_room, wide = model->wide_room;
    int n_rows = 0, longest = 0;
    for (int i = 0; i < n_sentences; i++) {
        const int32_t *ids = job->ids + job->starts[sentences[i]->index];
        for (int place = 0; place < sentences[i]->n_source; place++, n_rows++)
            embed(model, model->source_table, model->source_places, ids[place], place, work->x + (size_t)n_rows * room);
        if (sentences[i]->n_source > longest) longest = sentences[i]->n_source;
    }
    Memory memory;
    size_t most = 0;
    for (int layer = 0; layer < s->n_encoder_layers; layer++) {
        size_t needed = shape_memory(&memory, s, model->encoder[layer].self.n_key_heads, longest);
        if (needed > most) most = needed;
    }
    float *memory_room = malloc(most * sizeof(float) + 64);
    if (!memory_room) return 0;
    for (int index = 0; index < s->n_encoder_layers; index++) {
        const Layer *layer = model->encoder + index;
        const Attention *attention = &layer->self;
        const float *read = prepare(work, &layer->around_self, n_rows);
        multiply(work, &attention->in, read, n_rows, room, work->wide, wide);
        float *rows = work->wide, *mixed = work->mixed;
        for (int i = 0; i < n_sentences; i++) {
            const int n_places = sentences[i]->n_source, n_query = attention->n_heads * s->head_width;
            if (s->positions == 1)
                for (int place = 0; place < n_places; place++)
                    rotate(model, rows + (size_t)place * wide, attention->n_heads + attention->n_key_heads, place);
            shape_memory(&memory, s, attention->n_key_heads, n_places);
            fill_memory(&memory, s, attention->n_key_heads, memory_room, rows + n_query, wide);
            for (int place = 0; place < n_places; place++)
                attend_memory(work, attention, rows + (size_t)place * wide, &memory, place,
                              mixed + (size_t)place * model->mixed_room);
            rows += (size_t)n_places * wide;
            mixed += (size_t)n_places * model->mixed_room;
        }
        mix_heads(work, attention, &layer->around_self, n_rows);
        feed_forward(work, layer, n_rows);
    }
    free(memory_room);
    const float *read = prepare(work, &model->encoder_norm, n_rows);
    for (int index = 0; index < s->n_decoder_layers; index++) {
        const Attention *attention = &model->decoder[index].cross;
        multiply(work, &attention->keys_values, read, n_rows, room, work->wide, wide);
        const float *rows = work->wide;
        for (int i = 0; i < n_sentences; i++) {
            Memory *own_memory = sentences[i]->memories + index;
            float *at = index ? (own_memory - 1)->values + (size_t)model->decoder[index - 1].cross.n_key_heads *
                                                               (own_memory - 1)->n_places * (own_memory - 1)->values_room
                              : sentences[i]->memory_room;
            fill_memory(own_memory, s, attention->n_key_heads, at, rows, wide);
            rows += (size_t)sentences[i]->n_source * wide;
        }
    }
    return 1;
}

/* One query place of a beam, every head, over what the beam descends from. */
static void attend_cache(const Work *work, const Attention *attention, const float *queries, const float *cache,
                         int width, int n_beams, const int16_t *ancestors, int n_places, float *mixed)
{
    const Settings *s = &work->model->settings;
    const int n_heads = attention->n_heads, keys_width = attention->n_key_heads * s->head_width;
    const int scores_room = ROUND_UP(n_places, LANES);
    float *scores = work->scores;
    for (int place = 0; place < n_places; place++) {
        const float *keys = cache + ((size_t)place * n_beams + ancestors[place]) * width;
        for (int head = 0; head < n_heads; head++) {
            const float *query = queries + head * s->head_width, *key = keys + attention->key_head[head] * s->head_width;
            vec sums = {0};
            int i = 0;
            for (; i + LANES <= s->head_width; i += LANES) sums += load(query + i) * load(key + i);
            float score = sum_of(sums);
            for (; i < s->head_width; i++) score += query[i] * key[i];
            scores[head * scores_room + place] = score - attention->slopes[head] * (n_places - 1 - place);
        }
    }
    for (int head = 0; head < n_heads; head++) soften(scores + head * scores_room, n_places);
    memset(mixed, 0, n_heads * s->value_width * sizeof(float));
    for (int place = 0; place < n_places; place++) {
        const float *values = cache + ((size_t)place * n_beams + ancestors[place]) * width + keys_width;
        for (int head = 0; head < n_heads; head++) {
            const float *value = values + attention->key_head[head] * s->value_width;
            float weight = scores[head * scores_room + place], *to = mixed + head * s->value_width;
            int i = 0;
            for (; i + LANES <= s->value_width; i += LANES) store(to + i, load(to + i) + splat(weight) * load(value + i));
            for (; i < s->value_width; i++) to[i] += weight * value[i];
        }
    }
}

#define ROWS_OF_LOGITS 48 /* at once: few enough to stay near, enough to use each word's numbers well */

/* Every beam of every open sentence one id further: fills its best continuations. */
static int step(const Work *work, const Job *job, Sentence **sentences, int n_sentences, float *logits, float *gains,
                int *ids, int *n_choices)
{
    const Model *model = work->model;
    const Settings *s = &model->settings;
    const int room = model->width_room, wide = model->wide_room;
    int n_rows = 0;
    for (int i = 0; i < n_sentences; i++) {
        Sentence *one = sentences[i];
        if (!grow_caches(model, job, one)) return 0;
        for (int beam = 0; beam < one->n_beams; beam++, n_rows++) {
            int id = one->length ? one->written[(size_t)beam * one->limit + one->length - 1] : s->begin;
            embed(model, model->target_table, model->target_places, id, one->length, work->x + (size_t)n_rows * room);
            one->ancestors[(size_t)beam * one->limit + one->length] = (int16_t)beam;
        }
    }
    for (int index = 0; index < s->n_decoder_layers; index++) {
        const Layer *layer = model->decoder + index;
        const Attention *self = &layer->self, *cross = &layer->cross;
        const int n_query = self->n_heads * s->head_width, width = cache_width(model, index);
        multiply(work, &self->in, prepare(work, &layer->around_self, n_rows), n_rows, room, work->wide, wide);
        float *row = work->wide, *mixed = work->mixed;
        for (int i = 0; i < n_sentences; i++) {
            Sentence *one = sentences[i];
            for (int beam = 0; beam < one->n_beams; beam++, row += wide) {
                if (s->positions == 1) rotate(model, row, self->n_heads + self->n_key_heads, one->length);
                memcpy(one->cache[index] + ((size_t)one->length * job->beam + beam) * width, row + n_query,
                       width * sizeof(float));
            }
            row -= (size_t)one->n_beams * wide;
            for (int beam = 0; beam < one->n_beams; beam++, row += wide, mixed += model->mixed_room)
                attend_cache(work, self, row, one->cache[index], width, job->beam,
                             one->ancestors + (size_t)beam * one->limit, one->length + 1, mixed);
        }
        mix_heads(work, self, &layer->around_self, n_rows);
        multiply(work, &cross->in, prepare(work, &layer->around_cross, n_rows), n_rows, room, work->wide, wide);
        row = work->wide, mixed = work->mixed;
        for (int i = 0; i < n_sentences; i++)
            for (int beam = 0; beam < sentences[i]->n_beams; beam++, row += wide, mixed += model->mixed_room)
                attend_memory(work, cross, row, sentences[i]->memories + index, 0, mixed);
        mix_heads(work, cross, &layer->around_cross, n_rows);
        feed_forward(work, layer, n_rows);
    }
    const float *hidden = prepare(work, &model->decoder_norm, n_rows);
    const int n_columns = work->output->n_panels * PANEL;
    const int n_wanted = job->beam < work->output->n_out ? job->beam : work->output->n_out;
    float *never = alloca(work->n_never * sizeof(float) + 4);
    for (int start = 0; start < n_rows; start += ROWS_OF_LOGITS) {
        int height = n_rows - start < ROWS_OF_LOGITS ? n_rows - start : ROWS_OF_LOGITS;
        multiply(work, work->output, hidden + (size_t)start * room, height, room, logits, n_columns);
        for (int i = 0; i < height; i++) {
            float *scores = logits + (size_t)i * n_columns;
            float *own_gains = gains + (size_t)(start + i) * job->beam;
            for (int k = 0; k < work->n_never; k++) {
                never[k] = scores[work->never[k]];
                scores[work->never[k]] = -INFINITY;
            }
            int n = n_choices[start + i] = choose_largest(scores, n_columns, n_wanted, own_gains,
                                                          ids + (size_t)(start + i) * job->beam);
            if (!n) continue;
            /* What may not be written keeps its share of the probability. */
            float most = own_gains[0], total = sum_of_powers(scores, n_columns, most);
            for (int k = 0; k < work->n_never; k++) total += expf(never[k] - most);
            float log_total = most + logf(total);
            for (int k = 0; k < n; k++) own_gains[k] -= log_total;
            int *own_ids = ids + (size_t)(start + i) * job->beam;
            for (int k = 0; job->n_outputs && k < n; k++) own_ids[k] = job->outputs[own_ids[k]];
        }
    }
    return 1;
}

static void answer(const Job *job, const Sentence *sentence)
{
    const int index = sentence->index;
    job->n_answers[index] = sentence->n_found;
    for (int i = 0; i < sentence->n_found; i++) {
        const Found *found = sentence->found + i;
        const size_t at = (size_t)index * job->n_best + i;
        memcpy(job->answers + job->answer_starts[index] + (size_t)i * sentence->limit, found->ids,
               found->n_ids * sizeof(int32_t));
        job->answer_lengths[at] = found->n_ids;
        job->are_finished[at] = found->is_finished;
        job->log_probabilities[at] = found->log_probability;
    }
}

/* Which column of the output an id has; -1: none. */
static int column_of(const Job *job, int id)
{
    if (!job->n_outputs) return id;
    int low = 0, high = job->n_outputs;
    while (low < high) {
        int middle = (low + high) / 2;
        if (job->outputs[middle] < id) low = middle + 1;
        else high = middle;
    }
    return low < job->n_outputs && job->outputs[low] == id ? low : -1;
}

#define ROWS_TO_ENCODE 256 /* tokens of new sentences that are encoded together */

/* Every sentence of a job; 0: done, 1: there is no memory left, 2: it was told to stop. */
int mh_translate(const Model *model, const Job *job)
{
    const Settings *s = &model->settings;
    int longest = 0, longest_limit = 0;
    for (int64_t i = 0; i < job->n_sentences; i++) {
        int length = (int)(job->starts[i + 1] - job->starts[i]);
        if (length > longest) longest = length;
        if (job->limits[i] > longest_limit) longest_limit = job->limits[i];
    }
    int n_at_once = job->n_rows / job->beam > 0 ? job->n_rows / job->beam : 1;
    if (n_at_once > job->n_sentences) n_at_once = (int)job->n_sentences;
    const int n_encode = longest > ROWS_TO_ENCODE ? longest : ROWS_TO_ENCODE;
    const int n_decode = n_at_once * job->beam, n_rows = n_encode > n_decode ? n_encode : n_decode;
    int n_heads = 1, widest = model->wide_room;
    for (int i = 0; i < s->n_decoder_layers; i++)
        if (model->decoder[i].self.n_heads > n_heads) n_heads = model->decoder[i].self.n_heads;
    if (s->inner_width > widest) widest = s->inner_width;
    const size_t n_scores = (size_t)n_heads * ROUND_UP(longest > longest_limit ? longest : longest_limit, LANES) + LANES;
    const int n_logits = ROUND_UP(job->n_outputs ? job->n_outputs : s->vocab_size, PANEL);
    const size_t sizes[] = {(size_t)n_rows * model->width_room, (size_t)n_rows * model->width_room,
                            (size_t)n_rows * model->wide_room + PANEL, (size_t)n_rows * model->mixed_room + LANES,
                            (size_t)n_rows * model->width_room, n_scores,
                            (size_t)ROWS_OF_LOGITS * n_logits, (size_t)n_decode * job->beam,
                            (size_t)n_decode * job->beam, (size_t)n_decode,
                            s->is_int8 ? (size_t)n_rows * ROUND_UP(widest, 64) / 4 + 64 : 0, s->is_int8 ? n_rows : 0};
    enum { N_ROOMS = sizeof(sizes) / sizeof(*sizes) };
    float *rooms[N_ROOMS] = {0};
    Matrix some = {0};
    int32_t *never = malloc((job->n_never + 1) * sizeof(int32_t));
    Sentence **open = calloc(n_at_once ? n_at_once : 1, sizeof(Sentence *));
    int result = open && never ? 0 : 1, n_open = 0, n_never = 0;
    for (int i = 0; i < N_ROOMS; i++) {
        if (posix_memalign((void **)&rooms[i], 64, sizes[i] * sizeof(float) + 64)) result = 1, rooms[i] = NULL;
        if (rooms[i]) memset(rooms[i], 0, sizes[i] * sizeof(float) + 64);
    }
    if (job->n_outputs && !gather_columns(&model->output, job->outputs, job->n_outputs, &some)) result = 1;
    for (int i = 0; !result && i < job->n_never; i++) {
        int at = column_of(job, job->never[i]);
        if (at >= 0) never[n_never++] = at;
    }
    const Work work = {model, n_rows, rooms[0], rooms[1], rooms[2], rooms[3], rooms[4], rooms[5], (uint8_t *)rooms[10], rooms[11],
                       job->n_outputs ? &some : &model->output, never, n_never};
    float *logits = rooms[6], *gains = rooms[7];
    int *ids = (int *)rooms[8], *n_choices = (int *)rooms[9];
    int64_t next = 0;
    while (!result && (next < job->n_sentences || n_open)) {
        if (*job->stop) { result = 2; break; }
        /* New sentences come in when there is room for a fair number of them: encoding one alone is dear. */
        int n_free = n_at_once - n_open;
        while (!result && next < job->n_sentences && n_free && (4 * n_free >= n_at_once || !n_open)) {
            int n_new = 0, n_tokens = 0;
            while (next < job->n_sentences && n_new < n_free) {
                int length = (int)(job->starts[next + 1] - job->starts[next]);
                if (n_new && n_tokens + length > n_encode) break;
                Sentence *one = open_sentence(model, job, (int)next);
                if (!one) { result = 1; break; }
                open[n_open + n_new++] = one;
                n_tokens += length;
                next++;
            }
            if (!result && !encode(&work, job, open + n_open, n_new)) result = 1;
            n_open += n_new;
            n_free -= n_new;
        }
        if (result || !step(&work, job, open, n_open, logits, gains, ids, n_choices)) { result = 1; break; }
        int n_left = 0, row = 0;
        for (int i = 0; i < n_open; i++) {
            Sentence *one = open[i];
            int n_beams = one->n_beams;
            if (advance(model, job, one, gains + (size_t)row * job->beam, ids + (size_t)row * job->beam, n_choices + row)) {
                answer(job, one);
                close_sentence(model, one);
            } else
                open[n_left++] = one;
            row += n_beams;
        }
        n_open = n_left;
    }
    for (int i = 0; i < n_open; i++) close_sentence(model, open[i]);
    for (int i = 0; i < N_ROOMS; i++) free(rooms[i]);
    free(some.bytes ? (void *)some.bytes : (void *)some.weights);
    free(never);
    free(open);
    return result;
}

int mh_lanes(void) { return LANES; }
