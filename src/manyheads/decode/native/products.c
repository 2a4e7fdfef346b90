/* Matrix products in float32. A row's sums run over its inputs in the same order whatever other rows there are. */
#include "engine.h"

/* R rows by P panels, all sums in registers; each sum runs over the inputs in their order, whatever R and P are. */
INLINE void tile(const int R, const int P, int n_in, const float *x, int x_stride, const float *panels,
                 const float *bias, float *y, int y_stride)
{
    const size_t panel_size = (size_t)n_in * PANEL;
    vec sums[MAX_TILE_ROWS][8];
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
            vec value = splat(x[(size_t)r * x_stride + k]);
#pragma GCC unroll 8
            for (int p = 0; p < 2 * P; p++) sums[r][p] += value * column[p];
        }
    }
#pragma GCC unroll 12
    for (int r = 0; r < R; r++)
#pragma GCC unroll 8
        for (int p = 0; p < 2 * P; p++) store(y + (size_t)r * y_stride + p * LANES, sums[r][p] + load(bias + p * LANES));
}

#define TILE(R, P)                                                                                                  \
    static void tile_##R##_##P(int n_in, const float *x, int x_stride, const float *panels, const float *bias,      \
                               float *y, int y_stride)                                                              \
    {                                                                                                               \
        tile(R, P, n_in, x, x_stride, panels, bias, y, y_stride);                                                   \
    }
TILE(1, 4) TILE(1, 1) TILE(2, 2) TILE(2, 1) TILE(3, 1) TILE(4, 1) TILE(5, 1) TILE(6, 1)
#if MAX_TILE_ROWS == 12
TILE(3, 2) TILE(4, 2) TILE(7, 1) TILE(8, 1) TILE(9, 1) TILE(10, 1) TILE(11, 1) TILE(12, 1)
#endif

typedef void Tile(int, const float *, int, const float *, const float *, float *, int);
static Tile *const ONE_PANEL[] = {NULL, tile_1_1, tile_2_1, tile_3_1, tile_4_1, tile_5_1, tile_6_1,
#if MAX_TILE_ROWS == 12
                                  tile_7_1, tile_8_1, tile_9_1, tile_10_1, tile_11_1, tile_12_1
#endif
};
static Tile *const MORE_PANELS[] = {NULL, tile_1_4, tile_2_2,
#if MAX_TILE_ROWS == 12
                                    tile_3_2, tile_4_2
#endif
};
static const int N_PANELS[] = {1, 4, 2, 2, 2}; /* of MORE_PANELS, by the number of rows */
#define MAX_ROWS_OF_MORE_PANELS ((int)(sizeof(MORE_PANELS) / sizeof(*MORE_PANELS)) - 1)

static void multiply_floats(const Matrix *m, const float *x, int n_rows, int x_stride, float *y, int y_stride)
{
    const size_t panel_size = (size_t)m->n_in * PANEL;
    if (n_rows <= MAX_ROWS_OF_MORE_PANELS) { /* few rows: several panels at once hide the latency of the additions */
        int step = N_PANELS[n_rows], panel = 0;
        if (!n_rows) return;
        for (; panel + step <= m->n_panels; panel += step)
            MORE_PANELS[n_rows](m->n_in, x, x_stride, m->weights + panel * panel_size, m->bias + panel * PANEL,
                                y + panel * PANEL, y_stride);
        for (; panel < m->n_panels; panel++)
            ONE_PANEL[n_rows](m->n_in, x, x_stride, m->weights + panel * panel_size, m->bias + panel * PANEL,
                              y + panel * PANEL, y_stride);
        return;
    }
    for (int panel = 0; panel < m->n_panels; panel++) {
        int n_tiles = (n_rows + MAX_TILE_ROWS - 1) / MAX_TILE_ROWS;
        for (int i = 0, row = 0; i < n_tiles; i++) { /* tiles of similar height: 13 rows are 7 and 6, not 12 and 1 */
            int height = (n_rows - row + n_tiles - i - 1) / (n_tiles - i);
            ONE_PANEL[height](m->n_in, x + (size_t)row * x_stride, x_stride, m->weights + panel * panel_size,
                              m->bias + panel * PANEL, y + (size_t)row * y_stride + panel * PANEL, y_stride);
            row += height;
        }
    }
}

/* Some columns of a matrix as a matrix in one allocation, which `weights` or `bytes` begins; 0: out of memory. */
static int gather_columns(const Matrix *from, const int32_t *columns, int n_columns, Matrix *to)
{
    const int n_panels = ROUND_UP(n_columns, PANEL) / PANEL;
    const size_t capacity = (size_t)n_panels * PANEL;
    /* Four bytes are as long as a float: both kinds lie panel by panel, in each row by row, PANEL side by side. */
    const size_t depth = from->bytes ? (size_t)from->n_quads : (size_t)from->n_in;
    char *buffer = allocate_zeroed(capacity * (depth + 3), sizeof(float));
    if (!buffer) return 0;
    *to = (Matrix){.n_in = from->n_in, .n_out = n_columns, .n_panels = n_panels, .n_quads = from->n_quads};
    to->bias = (float *)buffer + capacity * depth;
    to->scales = to->bias + capacity;
    to->sums = (int32_t *)(to->scales + capacity);
    if (from->bytes)
        to->bytes = (int8_t *)buffer;
    else
        to->weights = (float *)buffer;
    for (int i = 0; i < (int)capacity; i++) { /* the padding of the last panel repeats a column and is never chosen */
        const int column = columns[i < n_columns ? i : n_columns - 1];
        to->bias[i] = i < n_columns ? from->bias[column] : -INFINITY;
        to->scales[i] = from->bytes ? from->scales[column] : 0;
        to->sums[i] = from->bytes ? from->sums[column] : 0;
    }
    const char *all = from->bytes ? (const char *)from->bytes : (const char *)from->weights;
    for (int panel = 0; panel < n_panels; panel++) {
        const char *sources[PANEL];
        char *into = buffer + (size_t)panel * depth * PANEL * 4;
        for (int i = 0; i < PANEL; i++) {
            const int at = panel * PANEL + i, column = columns[at < n_columns ? at : n_columns - 1];
            sources[i] = all + ((size_t)(column / PANEL) * depth * PANEL + column % PANEL) * 4;
        }
        for (size_t k = 0; k < depth; k++)
            for (int i = 0; i < PANEL; i++) memcpy(into + (k * PANEL + i) * 4, sources[i] + k * PANEL * 4, 4);
    }
    return 1;
}
