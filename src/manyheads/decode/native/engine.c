/* The native engine: a whole encoder-decoder and its search in one call, sources in, hypotheses out.
 *
 * It runs the greedy and beam search of manyheads/decode over the model of manyheads/model, in one thread per call.
 * Nothing is padded (rows are real tokens only), no cache is moved (a beam stores its ancestors), and a finished
 * sentence is replaced by the next one at once, so that the products always have many rows. Every row is computed in
 * the same order of additions whatever other rows there are: a sentence's result does not depend on its batch.
 *
 * This file is the one translation unit of the library; it includes the others in the order of their dependencies.
 */
#include "engine.h"

#include "memory.c"
#include "products.c"
#include "int8.c"
#include "attention.c"
#include "model.c"
#include "layers.c"
#include "search.c"

/* The size of a structure that Python passes, for comparison with ctypes: 0 Settings, 1 Job. */
EXPORT int64_t mh_struct_size(int which)
{
    return which == 0 ? (int64_t)sizeof(Settings) : which == 1 ? (int64_t)sizeof(Job) : -1;
}

EXPORT int mh_message_size(void) { return MESSAGE_SIZE; }

EXPORT int mh_lanes(void) { return LANES; }

/* 1: 8-bit products use the VNNI instructions. */
EXPORT int mh_has_vnni(void) { return OFFSET != 0; }
