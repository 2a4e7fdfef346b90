/* The internal header of the native engine: vector operations, data structures and constants.
 *
 * engine.c includes every other source file, so that the compiler sees one translation unit and can inline across
 * files. Only functions whose names begin with `mh_` are exported; native_engine.py calls them through ctypes.
 */
#ifndef MANYHEADS_ENGINE_H
#define MANYHEADS_ENGINE_H

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define EXPORT __attribute__((visibility("default")))
#define INLINE static inline __attribute__((always_inline))
#define ROUND_UP(n, m) (((n) + (m)-1) / (m) * (m))

/* Return codes of exported functions; native_engine.py has the same numbers. */
enum { MH_OK = 0, MH_NO_MEMORY = 1, MH_STOPPED = 2, MH_INVALID = 3 };

#define MAX_SIZE (1 << 24) /* of any width, count or length: products of two of them fit into 64 bits */
#define MAX_BEAM 64
#define MAX_INT8_INPUTS (1 << 16) /* 255 * 127 * this fits into 32 bits */
#define MESSAGE_SIZE 200

/* ---- Vectors ---- */

#if defined(__AVX512F__)
#define LANES 16
#define MAX_TILE_ROWS 12 /* with two vectors per row, this many accumulators fit into the registers */
#elif defined(__AVX__)
#define LANES 8
#define MAX_TILE_ROWS 6
#else
#define LANES 4
#define MAX_TILE_ROWS 6
#endif
#define PANEL (2 * LANES) /* columns of a matrix that are stored together */

typedef float vec __attribute__((vector_size(LANES * 4)));
typedef int32_t ivec __attribute__((vector_size(LANES * 4)));
typedef uint8_t bytevec __attribute__((vector_size(LANES)));
/* A vector at any address; may_alias because 8-bit panels and 32-bit sums are loaded through it too. */
typedef float unaligned_vec __attribute__((vector_size(LANES * 4), aligned(1), may_alias));

INLINE vec load(const void *from) { return *(const unaligned_vec *)from; }
INLINE void store(float *to, vec x) { *(unaligned_vec *)to = x; }
INLINE vec splat(float x) { return x - (vec){0}; }

INLINE vec vector_max(vec a, vec b) /* b where a is NaN */
{
    ivec is_larger = a > b;
    return (vec)(((ivec)a & is_larger) | ((ivec)b & ~is_larger));
}

/* Halves are added to halves: log2(LANES) dependent additions rather than LANES. */
INLINE float horizontal_sum(vec x)
{
#if LANES == 16
    return _mm512_reduce_add_ps((__m512)x);
#else
    for (int n = LANES / 2; n; n /= 2)
        for (int i = 0; i < n; i++) x[i] += x[i + n];
    return x[0];
#endif
}

INLINE float horizontal_max(vec x)
{
#if LANES == 16
    return _mm512_reduce_max_ps((__m512)x);
#else
    for (int n = LANES / 2; n; n /= 2)
        for (int i = 0; i < n; i++) x[i] = x[i] > x[i + n] ? x[i] : x[i + n];
    return x[0];
#endif
}

INLINE int any_lane(ivec is)
{
#if LANES == 16
    return _mm512_test_epi32_mask((__m512i)is, (__m512i)is) != 0;
#elif LANES == 8 && defined(__AVX__)
    return _mm256_movemask_ps((__m256)is) != 0;
#elif LANES == 4 && defined(__SSE2__)
    return _mm_movemask_ps((__m128)is) != 0;
#else
    int any = 0;
    for (int i = 0; i < LANES; i++) any |= is[i];
    return any != 0;
#endif
}

/* Adding 1.5 * 2^23 to a small float leaves its nearest integer in the lowest bits. */
#define TO_INTEGER 12582912.0f

/* e^x, accurate to about 1 ulp; 0 below -87. */
INLINE vec exponential(vec x)
{
    ivec is_small = x < splat(-87.0f);
    x = vector_max(x, splat(-87.0f));
    x = -vector_max(-x, splat(-88.0f));
    vec shifted = x * splat(1.44269504088896341f) + splat(TO_INTEGER);
    vec whole = shifted - splat(TO_INTEGER);
    vec rest = x - whole * splat(0.693359375f) - whole * splat(-2.12194440e-4f);
    vec power = splat(1.9875691500e-4f);
    power = power * rest + splat(1.3981999507e-3f);
    power = power * rest + splat(8.3334519073e-3f);
    power = power * rest + splat(4.1665795894e-2f);
    power = power * rest + splat(1.6666665459e-1f);
    power = power * rest + splat(5.0000001201e-1f);
    power = power * rest * rest + rest + splat(1.0f);
    ivec scale = ((ivec)shifted - (ivec)splat(TO_INTEGER) + 127) << 23;
    return (vec)((ivec)(power * (vec)scale) & ~is_small);
}

/* ---- The model ---- */

/* `PackedSettings` of model_packing.py. */
typedef struct {
    int32_t vocab_size, width, feed_forward_width, n_encoder_layers, n_decoder_layers, head_width, value_width;
    int32_t activation; /* 0 ReLU, 1 GELU, 2 SwiGLU, 3 SiLU */
    int32_t norm;       /* 0 layer norm, 1 RMS norm, 2 weight and bias only (batch norm with folded statistics) */
    int32_t norm_first; /* 1 pre-norm, 0 post-norm */
    int32_t positions;  /* 0 added to the embedding, 1 rotary, 2 ALiBi, 3 none */
    int32_t max_length, bos, eos, is_int8;
    float epsilon;
} Settings;

enum { RELU = 0, GELU = 1, SWIGLU = 2, SILU = 3 };
enum { LAYER_NORM = 0, RMS_NORM = 1, AFFINE = 2 };
enum { ADDED = 0, ROTARY = 1, ALIBI = 2, NO_POSITIONS = 3 };

/* A projection. An output column is a row of the PyTorch weight. */
typedef struct {
    int n_in, n_out, n_panels, n_quads; /* n_quads: groups of four inputs, for 8-bit products */
    float *weights;                     /* panel by panel, in each panel input by input */
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
    int *key_head;       /* the key head that each head reads */
    const float *slopes; /* of ALiBi; 0 otherwise */
    Matrix in;           /* W^Q, W^K and W^V in self-attention, W^Q in cross-attention; 1/sqrt(d_k) is in W^Q */
    Matrix keys_values;  /* W^K and W^V of cross-attention */
    Matrix out;
} Attention;

typedef struct {
    Attention self, cross;
    Matrix inner, outer; /* of the feed-forward */
    Norm self_norm, cross_norm, feed_forward_norm;
} Layer;

typedef struct {
    Settings settings;
    float *source_table, *target_table, *source_positions, *target_positions, *sines, *cosines;
    Layer *encoder, *decoder;
    Norm encoder_norm, decoder_norm;
    Matrix output;
    /* Floats from one row to the next: of the width, of the widest product, of the heads' values side by side. */
    int width_stride, wide_stride, heads_stride;
    int bytes_stride; /* bytes of the longest input row of any 8-bit product */
    void **owned;
    size_t n_owned, owned_capacity;
} Model;

/* ---- One call ---- */

/* Keys transposed (key head, dimension, position) and values (key head, position, dimension), padded to vectors. */
typedef struct {
    int n_positions, keys_stride, values_stride;
    float *keys, *values;
} KeysValues;

typedef struct {
    int n_ids, is_finished;
    float log_probability, score;
    int32_t *ids;
} Hypothesis;

typedef struct {
    int index, n_source, limit, length, n_beams, n_hypotheses, cache_capacity;
    float longest_penalty;       /* the length penalty at the limit */
    float *cross_buffer;         /* the keys and values of all decoder layers */
    KeysValues *cross;           /* one per decoder layer */
    float **cache;               /* one per decoder layer: (position, beam, keys and values) */
    int16_t *ancestors, *next_ancestors; /* (beam, position): the beam that holds the position's keys and values */
    int32_t *generated, *next_generated; /* (beam, position) */
    float *totals;               /* log-probability of each beam */
    Hypothesis *hypotheses;      /* the finished ones, best first */
    int32_t *hypothesis_ids;
} Sentence;

/* `_Job` of native_engine.py. Every array is passed with its length, or has one entry per sentence. */
typedef struct {
    int64_t n_sentences;
    const int32_t *ids;    /* of all sources, one after another */
    int64_t n_ids;
    const int64_t *starts; /* n_sentences + 1: where each source begins in `ids` */
    const int32_t *limits; /* maximum number of new tokens, EOS included; at least 1 */
    const int32_t *forbidden; /* ids that are never generated */
    const int32_t *outputs;   /* the ids that may be generated, strictly ascending */
    int32_t n_forbidden, n_outputs /* 0: all ids */, beam, n_best;
    int32_t max_rows;      /* how many beams are computed side by side */
    float length_penalty;
    /* Results: n_best per sentence; ids at answer_starts[sentence] + i * limits[sentence]. */
    const int64_t *answer_starts; /* n_sentences + 1 */
    int32_t *answers;
    int64_t answers_size;
    int32_t *n_answers, *answer_lengths, *are_finished;
    float *log_probabilities;
    const volatile int32_t *stop; /* another thread sets it to end the call early */
} Job;

/* Buffers of one call. Rows of x, normed and update are width_stride apart, those of wide wide_stride, those of heads
 * heads_stride. */
typedef struct {
    const Model *model;
    float *x, *normed, *wide, *heads, *update, *scores, *logits, *log_probs, *forbidden_logits;
    int *ids, *n_choices;
    uint8_t *bytes; /* rows in 8 bits */
    float *byte_scales;
    const Matrix *output;     /* the model's output matrix, or the columns of it that the job lists */
    const int32_t *forbidden; /* columns of `output` */
    int n_forbidden;
} Workspace;

#endif
