/* Matrix products in 8 bits: weights are quantized once per column, rows are quantized before every product. */
#include "engine.h"

/* Every lane adds four products of bytes. Integer sums are exact, so all processors give the same result. Where the
 * instruction takes unsigned first factors, OFFSET is added to them and OFFSET times the column's sum is subtracted
 * afterwards. */
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
#elif defined(__AVX512BW__)
#define OFFSET 0
INLINE ivec add_products(ivec sums, ivec x, ivec w)
{
    /* AVX-512 has no sign instruction: x is negated where w is negative. A pair's sum never exceeds 16 bits. */
    __mmask64 is_negative = _mm512_movepi8_mask((__m512i)w);
    __m512i signed_x = _mm512_mask_sub_epi8((__m512i)x, is_negative, _mm512_setzero_si512(), (__m512i)x);
    __m512i pairs = _mm512_maddubs_epi16(_mm512_abs_epi8((__m512i)w), signed_x);
    return sums + (ivec)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
}
#elif defined(__AVX2__)
#define OFFSET 0
INLINE __m256i products_of(__m256i x, __m256i w)
{
    __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)); /* never exceeds 16 bits */
    return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
INLINE ivec add_products(ivec sums, ivec x, ivec w)
{
    union { ivec all; __m256i parts[LANES / 8]; } a = {x}, b = {w};
    for (int i = 0; i < LANES / 8; i++) a.parts[i] = products_of(a.parts[i], b.parts[i]);
    return sums + a.all;
}
#elif defined(__SSSE3__) && LANES == 4
#define OFFSET 0
INLINE ivec add_products(ivec sums, ivec x, ivec w)
{
    __m128i pairs = _mm_maddubs_epi16(_mm_abs_epi8((__m128i)w), _mm_sign_epi8((__m128i)x, (__m128i)w));
    return sums + (ivec)_mm_madd_epi16(pairs, _mm_set1_epi16(1));
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

/* The nearest bytes to a column's weights, and the scale that maps them back. */
static void quantize_column(Matrix *matrix, int column, const float *weights)
{
    float most = 0;
    for (int k = 0; k < matrix->n_in; k++) most = fmaxf(most, fabsf(weights[k]));
    float scale = most > 0 ? most / 127 : 1;
    int panel = column / PANEL, offset = column % PANEL;
    int8_t *bytes = matrix->bytes + (size_t)panel * matrix->n_quads * 4 * PANEL;
    int32_t sum = 0;
    for (int k = 0; k < matrix->n_in; k++) {
        int byte = (int)lrintf(weights[k] / scale);
        byte = byte < -127 ? -127 : byte > 127 ? 127 : byte; /* only of weights that are infinite or NaN */
        bytes[(size_t)(k / 4) * 4 * PANEL + 4 * offset + k % 4] = (int8_t)byte;
        sum += byte;
    }
    matrix->scales[column] = scale;
    matrix->sums[column] = 128 * sum;
}

/* As `tile`, of bytes: R rows by P panels. */
INLINE void byte_tile(const int R, const int P, const Matrix *m, int panel, const uint8_t *x, const float *x_scales,
                      float *y, int y_stride)
{
    const size_t row_size = (size_t)m->n_quads * 4, panel_size = row_size * PANEL;
    const int8_t *panels = m->bytes + panel * panel_size;
    ivec sums[MAX_TILE_ROWS][8];
#pragma GCC unroll 12
    for (int r = 0; r < R; r++)
#pragma GCC unroll 8
        for (int p = 0; p < 2 * P; p++) sums[r][p] = (ivec){0};
    for (int k = 0; k < m->n_quads; k++) {
        ivec column[8];
#pragma GCC unroll 8
        for (int p = 0; p < 2 * P; p++)
            column[p] = (ivec)load(panels + (p / 2) * panel_size + ((size_t)k * PANEL + (p % 2) * LANES) * 4);
#pragma GCC unroll 12
        for (int r = 0; r < R; r++) {
            int32_t quad;
            memcpy(&quad, x + r * row_size + 4 * (size_t)k, 4);
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
            ivec sum = OFFSET ? sums[r][p] - (ivec)load(m->sums + at) : sums[r][p];
            vec value = __builtin_convertvector(sum, vec) * (splat(x_scales[r]) * load(m->scales + at));
            store(y + (size_t)r * y_stride + p * LANES, value + load(m->bias + at));
        }
}

#define BYTE_TILE(R, P)                                                                                             \
    static void byte_tile_##R##_##P(const Matrix *m, int panel, const uint8_t *x, const float *scales, float *y,    \
                                    int y_stride)                                                                   \
    {                                                                                                               \
        byte_tile(R, P, m, panel, x, scales, y, y_stride);                                                          \
    }
BYTE_TILE(1, 4) BYTE_TILE(1, 1) BYTE_TILE(2, 2) BYTE_TILE(2, 1) BYTE_TILE(3, 1) BYTE_TILE(4, 1) BYTE_TILE(5, 1)
BYTE_TILE(6, 1)
#if MAX_TILE_ROWS == 12
BYTE_TILE(3, 2) BYTE_TILE(4, 2) BYTE_TILE(7, 1) BYTE_TILE(8, 1) BYTE_TILE(9, 1) BYTE_TILE(10, 1) BYTE_TILE(11, 1)
BYTE_TILE(12, 1)
#endif

typedef void ByteTile(const Matrix *, int, const uint8_t *, const float *, float *, int);
static ByteTile *const ONE_BYTE_PANEL[] = {NULL, byte_tile_1_1, byte_tile_2_1, byte_tile_3_1, byte_tile_4_1,
                                           byte_tile_5_1, byte_tile_6_1,
#if MAX_TILE_ROWS == 12
                                           byte_tile_7_1, byte_tile_8_1, byte_tile_9_1, byte_tile_10_1,
                                           byte_tile_11_1, byte_tile_12_1
#endif
};
static ByteTile *const MORE_BYTE_PANELS[] = {NULL, byte_tile_1_4, byte_tile_2_2,
#if MAX_TILE_ROWS == 12
                                             byte_tile_3_2, byte_tile_4_2
#endif
};

/* Each row's nearest bytes, and the scale that maps them back: the largest absolute value becomes 127. */
static void quantize_rows(const float *x, int n_rows, int x_stride, int n, uint8_t *bytes, float *scales)
{
    const int size = ROUND_UP(n, 4);
    for (int row = 0; row < n_rows; row++, x += x_stride, bytes += size) {
        vec most = {0};
        int i = 0;
        for (; i + LANES <= n; i += LANES) most = vector_max(vector_max(load(x + i), -load(x + i)), most);
        float largest = horizontal_max(most);
        for (; i < n; i++) largest = fmaxf(largest, fabsf(x[i]));
        float by = largest > 0 ? 127 / largest : 0;
        scales[row] = largest / 127;
        const vec to_integer = splat(TO_INTEGER);
        for (i = 0; i + LANES <= n; i += LANES) {
            ivec whole = (ivec)(load(x + i) * splat(by) + to_integer) - (ivec)to_integer + OFFSET;
            bytevec narrow = __builtin_convertvector(whole, bytevec);
            memcpy(bytes + i, &narrow, LANES);
        }
        for (; i < n; i++) bytes[i] = (uint8_t)((int)lrintf(x[i] * by) + OFFSET);
        for (; i < size; i++) bytes[i] = 0;
    }
}

static void multiply_bytes(const Workspace *work, const Matrix *m, const float *x, int n_rows, int x_stride, float *y,
                           int y_stride)
{
    const size_t row_size = (size_t)m->n_quads * 4;
    quantize_rows(x, n_rows, x_stride, m->n_in, work->bytes, work->byte_scales);
    if (n_rows <= MAX_ROWS_OF_MORE_PANELS) {
        int step = N_PANELS[n_rows], panel = 0;
        if (!n_rows) return;
        for (; panel + step <= m->n_panels; panel += step)
            MORE_BYTE_PANELS[n_rows](m, panel, work->bytes, work->byte_scales, y + panel * PANEL, y_stride);
        for (; panel < m->n_panels; panel++)
            ONE_BYTE_PANEL[n_rows](m, panel, work->bytes, work->byte_scales, y + panel * PANEL, y_stride);
        return;
    }
    for (int panel = 0; panel < m->n_panels; panel++) {
        int n_tiles = (n_rows + MAX_TILE_ROWS - 1) / MAX_TILE_ROWS;
        for (int i = 0, row = 0; i < n_tiles; i++) {
            int height = (n_rows - row + n_tiles - i - 1) / (n_tiles - i);
            ONE_BYTE_PANEL[height](m, panel, work->bytes + row * row_size, work->byte_scales + row,
                                   y + (size_t)row * y_stride + panel * PANEL, y_stride);
            row += height;
        }
    }
}

/* y = x W + bias, in the precision in which the matrix is stored. */
static void multiply(const Workspace *work, const Matrix *m, const float *x, int n_rows, int x_stride, float *y,
                     int y_stride)
{
    if (m->bytes)
        multiply_bytes(work, m, x, n_rows, x_stride, y, y_stride);
    else
        multiply_floats(m, x, n_rows, x_stride, y, y_stride);
}
