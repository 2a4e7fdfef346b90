/* Greedy and beam search: finished sentences are replaced by new ones, so that the products always have many rows. */
#include "engine.h"

#define LOGITS_ROWS 48  /* computed at once: few enough to stay in the cache, enough to reuse each weight */
#define ENCODE_ROWS 256 /* tokens of new sentences that are encoded together */

#if defined(__x86_64__) && defined(__GLIBC__)
/* The pow of glibc 2.29 differs in errno only; with the older one, a wheel runs wherever PyTorch's do (glibc 2.28). */
__asm__(".symver pow, pow@GLIBC_2.2.5");
#endif

/* ((5 + length) / 6)^alpha of Wu 2016. */
static float penalty(int length, float alpha) { return (float)pow((5.0 + length) / 6.0, alpha); }

/* Keep a hypothesis if it is among the n best. */
static void keep_hypothesis(const Job *job, Sentence *sentence, const int32_t *ids, int n_ids, float log_probability,
                            int counted, int is_finished)
{
    float score = log_probability / penalty(counted, job->length_penalty);
    int at = sentence->n_hypotheses;
    while (at > 0 && score > sentence->hypotheses[at - 1].score) at--;
    if (at >= job->n_best) return;
    const int last = sentence->n_hypotheses < job->n_best ? sentence->n_hypotheses : job->n_best - 1;
    int32_t *buffer = sentence->hypotheses[last].ids;
    memmove(sentence->hypotheses + at + 1, sentence->hypotheses + at, (size_t)(last - at) * sizeof(Hypothesis));
    memcpy(buffer, ids, (size_t)n_ids * sizeof(int32_t));
    sentence->hypotheses[at] = (Hypothesis){n_ids, is_finished, log_probability, score, buffer};
    if (sentence->n_hypotheses < job->n_best) sentence->n_hypotheses++;
}

/* The k largest of n numbers, best first; of equal ones the first. n is a multiple of LANES. */
static int choose_largest(const float *from, int n, int k, float *values, int *indices)
{
    int n_chosen = 0;
    float least = -INFINITY;
    for (int start = 0; start < n; start += LANES) {
        if (!any_lane(load(from + start) > splat(least))) continue;
        for (int i = start; i < start + LANES; i++) {
            if (!(from[i] > least)) continue;
            int at = n_chosen < k ? n_chosen++ : k - 1;
            for (; at > 0 && from[i] > values[at - 1]; at--) values[at] = values[at - 1], indices[at] = indices[at - 1];
            values[at] = from[i];
            indices[at] = i;
            if (n_chosen == k) least = values[k - 1];
        }
    }
    return n_chosen;
}

/* The sum of e^(x - less) over n numbers; -inf adds nothing. n is a multiple of PANEL. */
static float sum_of_exponentials(const float *from, int n, float less)
{
    vec one = {0}, other = {0};
    for (int i = 0; i < n; i += PANEL) {
        one += exponential(load(from + i) - splat(less));
        other += exponential(load(from + i + LANES) - splat(less));
    }
    return horizontal_sum(one + other);
}

/* Write the best continuations of one beam to `log_probs` and `ids`, best first; returns their number. */
static int choose_tokens(const Workspace *work, const Job *job, float *logits, float *log_probs, int *ids)
{
    const int n_columns = work->output->n_panels * PANEL;
    const int n_most = job->beam < work->output->n_out ? job->beam : work->output->n_out;
    for (int k = 0; k < work->n_forbidden; k++) {
        work->forbidden_logits[k] = logits[work->forbidden[k]];
        logits[work->forbidden[k]] = -INFINITY;
    }
    const int n = choose_largest(logits, n_columns, n_most, log_probs, ids);
    if (!n) return 0;
    /* A forbidden token keeps its share of the probability. Its logit may be the largest by far: subtracting less
     * than the largest of all would overflow. */
    float most = log_probs[0];
    for (int k = 0; k < work->n_forbidden; k++)
        if (work->forbidden_logits[k] > most) most = work->forbidden_logits[k];
    float total = sum_of_exponentials(logits, n_columns, most);
    for (int k = 0; k < work->n_forbidden; k++) total += expf(work->forbidden_logits[k] - most);
    const float log_total = most + logf(total);
    for (int k = 0; k < n; k++) log_probs[k] -= log_total;
    for (int k = 0; job->n_outputs && k < n; k++) ids[k] = job->outputs[ids[k]];
    return n;
}

typedef struct {
    float total;
    int beam, id;
} Candidate;

/* Write the best continuations of all beams of a sentence, best first; returns their number. */
static int choose_candidates(const Job *job, const Sentence *sentence, const float *log_probs, const int *ids,
                             const int *n_choices, Candidate *best)
{
    const int most = job->beam;
    int n_best = 0;
    for (int beam = 0; beam < sentence->n_beams; beam++)
        for (int i = 0; i < n_choices[beam]; i++) {
            Candidate one = {sentence->totals[beam] + log_probs[beam * most + i], beam, ids[beam * most + i]};
            if (!(one.total > -INFINITY)) continue; /* nor NaN */
            int at = n_best < most ? n_best++ : one.total > best[most - 1].total ? most - 1 : -1;
            if (at < 0) break;
            for (; at > 0 && one.total > best[at - 1].total; at--) best[at] = best[at - 1];
            best[at] = one;
        }
    return n_best;
}

/* Append one token to a sentence, from the best continuations of its beams; returns whether it is finished. */
static int advance(const Model *model, const Job *job, Sentence *sentence, const float *log_probs, const int *ids,
                   const int *n_choices)
{
    const int limit = sentence->limit;
    Candidate best[MAX_BEAM];
    const int n_best = choose_candidates(job, sentence, log_probs, ids, n_choices, best);
    const int length = ++sentence->length;
    if (!n_best) { /* no continuation is possible: the beams end unfinished */
        if (!sentence->n_hypotheses)
            for (int beam = 0; beam < sentence->n_beams; beam++)
                keep_hypothesis(job, sentence, sentence->generated + (size_t)beam * limit, length - 1,
                                sentence->totals[beam], length - 1, 0);
        return 1;
    }
    int n_beams = 0;
    for (int i = 0; i < n_best; i++) {
        const int32_t *generated = sentence->generated + (size_t)best[i].beam * limit;
        if (best[i].id == model->settings.eos) {
            keep_hypothesis(job, sentence, generated, length - 1, best[i].total, length, 1);
            continue;
        }
        int32_t *to = sentence->next_generated + (size_t)n_beams * limit;
        memcpy(to, generated, (size_t)(length - 1) * sizeof(int32_t));
        to[length - 1] = best[i].id;
        int16_t *ancestors = sentence->next_ancestors + (size_t)n_beams * limit;
        memcpy(ancestors, sentence->ancestors + (size_t)best[i].beam * limit, (size_t)(length - 1) * sizeof(int16_t));
        ancestors[length - 1] = (int16_t)best[i].beam;
        sentence->totals[n_beams++] = best[i].total; /* `best` holds copies: the old totals are not read again */
    }
    int16_t *ancestors = sentence->ancestors;
    int32_t *generated = sentence->generated;
    sentence->ancestors = sentence->next_ancestors, sentence->next_ancestors = ancestors;
    sentence->generated = sentence->next_generated, sentence->next_generated = generated;
    sentence->n_beams = n_beams;
    /* The bound of beam_search.py: no continuation scores more than its beam's log-probability over the largest penalty. */
    const int is_full = sentence->n_hypotheses == job->n_best;
    const int is_done = !n_beams || length >= limit ||
                        (is_full && sentence->hypotheses[job->n_best - 1].score >= sentence->totals[0] / sentence->longest_penalty);
    if (is_done && !sentence->n_hypotheses)
        for (int beam = 0; beam < n_beams; beam++)
            keep_hypothesis(job, sentence, sentence->generated + (size_t)beam * limit, length, sentence->totals[beam],
                            length, 0);
    return is_done;
}

/* ---- Sentences ---- */

static void close_sentence(const Model *model, Sentence *sentence)
{
    if (!sentence) return;
    for (int layer = 0; sentence->cache && layer < model->settings.n_decoder_layers; layer++)
        release(sentence->cache[layer]);
    void *buffers[] = {sentence->cache, sentence->cross_buffer, sentence->cross, sentence->ancestors,
                       sentence->next_ancestors, sentence->generated, sentence->next_generated, sentence->totals,
                       sentence->hypotheses, sentence->hypothesis_ids, sentence};
    for (size_t i = 0; i < sizeof(buffers) / sizeof(*buffers); i++) release(buffers[i]);
}

/* A new sentence with its buffers and no generated tokens; NULL: out of memory. */
static Sentence *open_sentence(const Model *model, const Job *job, int index)
{
    const Settings *s = &model->settings;
    Sentence *sentence = allocate_zeroed(1, sizeof(Sentence));
    if (!sentence) return NULL;
    sentence->index = index;
    sentence->n_source = (int)(job->starts[index + 1] - job->starts[index]);
    sentence->limit = job->limits[index];
    sentence->longest_penalty = penalty(sentence->limit, job->length_penalty);
    sentence->n_beams = 1;
    const size_t n_layers = (size_t)s->n_decoder_layers, limit = (size_t)sentence->limit, beam = (size_t)job->beam;
    sentence->cross = allocate_zeroed(n_layers, sizeof(KeysValues));
    sentence->cache = allocate_zeroed(n_layers, sizeof(float *));
    size_t n_floats = 0;
    for (int layer = 0; sentence->cross && layer < s->n_decoder_layers; layer++)
        n_floats += shape_keys_values(sentence->cross + layer, s, model->decoder[layer].cross.n_key_heads, sentence->n_source);
    sentence->cross_buffer = allocate(n_floats + LANES, sizeof(float));
    sentence->ancestors = allocate(beam * limit, sizeof(int16_t));
    sentence->next_ancestors = allocate(beam * limit, sizeof(int16_t));
    sentence->generated = allocate(beam * limit, sizeof(int32_t));
    sentence->next_generated = allocate(beam * limit, sizeof(int32_t));
    sentence->totals = allocate_zeroed(beam, sizeof(float));
    sentence->hypotheses = allocate_zeroed((size_t)job->n_best, sizeof(Hypothesis));
    sentence->hypothesis_ids = allocate((size_t)job->n_best * limit, sizeof(int32_t));
    if (!sentence->cross || !sentence->cache || !sentence->cross_buffer || !sentence->ancestors ||
        !sentence->next_ancestors || !sentence->generated || !sentence->next_generated || !sentence->totals ||
        !sentence->hypotheses || !sentence->hypothesis_ids) {
        close_sentence(model, sentence);
        return NULL;
    }
    for (int i = 0; i < job->n_best; i++) sentence->hypotheses[i].ids = sentence->hypothesis_ids + (size_t)i * limit;
    return sentence;
}

/* Grow the caches if one more position does not fit. */
static int grow_caches(const Model *model, const Job *job, Sentence *sentence)
{
    if (sentence->length < sentence->cache_capacity) return MH_OK;
    int capacity = sentence->cache_capacity ? 2 * sentence->cache_capacity : 16;
    if (capacity > sentence->limit) capacity = sentence->limit;
    for (int layer = 0; layer < model->settings.n_decoder_layers; layer++) {
        const size_t n_floats = (size_t)capacity * job->beam * cache_width(model, layer) + LANES;
        float *cache = reallocate(sentence->cache[layer], n_floats, sizeof(float));
        if (!cache) return MH_NO_MEMORY;
        sentence->cache[layer] = cache;
    }
    sentence->cache_capacity = capacity;
    return MH_OK;
}

static void write_answers(const Job *job, const Sentence *sentence)
{
    const int index = sentence->index;
    job->n_answers[index] = sentence->n_hypotheses;
    for (int i = 0; i < sentence->n_hypotheses; i++) {
        const Hypothesis *hypothesis = sentence->hypotheses + i;
        const size_t at = (size_t)index * job->n_best + i;
        memcpy(job->answers + job->answer_starts[index] + (size_t)i * sentence->limit, hypothesis->ids,
               (size_t)hypothesis->n_ids * sizeof(int32_t));
        job->answer_lengths[at] = hypothesis->n_ids;
        job->are_finished[at] = hypothesis->is_finished;
        job->log_probabilities[at] = hypothesis->log_probability;
    }
}

/* Generate one token for every beam of every open sentence; write the answers of finished ones and close them. */
static int step(const Workspace *work, const Job *job, Sentence **sentences, int *n_sentences)
{
    const Model *model = work->model;
    const int n_columns = work->output->n_panels * PANEL, stride = model->width_stride;
    int n_rows = 0;
    for (int i = 0; i < *n_sentences; i++) {
        if (grow_caches(model, job, sentences[i])) return MH_NO_MEMORY;
        n_rows += sentences[i]->n_beams;
    }
    const float *hidden = decode(work, job, sentences, *n_sentences, n_rows);
    for (int start = 0; start < n_rows; start += LOGITS_ROWS) {
        const int height = n_rows - start < LOGITS_ROWS ? n_rows - start : LOGITS_ROWS;
        multiply(work, work->output, hidden + (size_t)start * stride, height, stride, work->logits, n_columns);
        for (int i = 0; i < height; i++) {
            const size_t at = (size_t)(start + i) * job->beam;
            work->n_choices[start + i] =
                choose_tokens(work, job, work->logits + (size_t)i * n_columns, work->log_probs + at, work->ids + at);
        }
    }
    int n_left = 0;
    size_t row = 0;
    for (int i = 0; i < *n_sentences; i++) {
        Sentence *one = sentences[i];
        const size_t n_beams = (size_t)one->n_beams, at = row * job->beam;
        if (advance(model, job, one, work->log_probs + at, work->ids + at, work->n_choices + row)) {
            write_answers(job, one);
            close_sentence(model, one);
        } else
            sentences[n_left++] = one;
        row += n_beams;
    }
    *n_sentences = n_left;
    return MH_OK;
}

/* ---- One call ---- */

/* Everything that is read through a pointer later is checked here, so that no call can read or write out of bounds. */
static int check_job(const Settings *s, const Job *job, char *message)
{
    if (job->beam < 1 || job->beam > MAX_BEAM) return invalid(message, "beam = %d is not between 1 and %d", job->beam, MAX_BEAM);
    if (job->n_best < 1 || job->n_best > job->beam)
        return invalid(message, "n_best = %d is not between 1 and beam = %d", job->n_best, job->beam);
    if (job->max_rows < 1 || job->max_rows > MAX_SIZE) return invalid(message, "max_rows = %d", job->max_rows);
    if (!(job->length_penalty >= 0 && job->length_penalty <= 10))
        return invalid(message, "length_penalty = %g is not between 0 and 10", job->length_penalty);
    if (job->n_sentences < 0 || job->n_sentences > INT32_MAX) return invalid(message, "%lld sentences", (long long)job->n_sentences);
    if (job->starts[0] != 0 || job->answer_starts[0] != 0) return invalid(message, "the first sentence does not start at 0");
    for (int64_t i = 0; i < job->n_sentences; i++) {
        /* Differences are bounded before they are added up, so that nothing overflows. */
        if (job->starts[i + 1] <= job->starts[i] || job->starts[i + 1] > job->n_ids ||
            job->starts[i + 1] - job->starts[i] > s->max_length)
            return invalid(message, "source %lld does not have 1 to %d tokens", (long long)i, s->max_length);
        if (job->limits[i] < 1 || job->limits[i] > s->max_length)
            return invalid(message, "limit %lld = %d is not between 1 and %d", (long long)i, job->limits[i], s->max_length);
        const int64_t n_reserved = (int64_t)job->n_best * job->limits[i];
        if (job->answer_starts[i] > job->answers_size - n_reserved ||
            job->answer_starts[i + 1] != job->answer_starts[i] + n_reserved)
            return invalid(message, "sentence %lld needs space for %lld answer ids", (long long)i,
                           (long long)n_reserved);
    }
    if (job->starts[job->n_sentences] != job->n_ids) return invalid(message, "the sources do not have %lld ids", (long long)job->n_ids);
    for (int64_t i = 0; i < job->n_ids; i++)
        if (job->ids[i] < 0 || job->ids[i] >= s->vocab_size)
            return invalid(message, "id %d is not between 0 and %d", job->ids[i], s->vocab_size - 1);
    if (job->n_forbidden < 0 || job->n_outputs < 0 || job->n_outputs > s->vocab_size || job->n_forbidden > s->vocab_size)
        return invalid(message, "%d forbidden and %d listed ids for %d tokens", job->n_forbidden, job->n_outputs, s->vocab_size);
    for (int32_t i = 0; i < job->n_forbidden; i++)
        if (job->forbidden[i] < 0 || job->forbidden[i] >= s->vocab_size || (i && job->forbidden[i] <= job->forbidden[i - 1]))
            return invalid(message, "forbidden ids are not strictly ascending token ids");
    for (int32_t i = 0; i < job->n_outputs; i++)
        if (job->outputs[i] < 0 || job->outputs[i] >= s->vocab_size || (i && job->outputs[i] <= job->outputs[i - 1]))
            return invalid(message, "listed ids are not strictly ascending token ids");
    return MH_OK;
}

/* The column of the output that belongs to an id; -1: none. */
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

/* Sizes of one call. */
typedef struct {
    int n_at_once; /* sentences that are searched side by side */
    int n_encode;  /* tokens that are encoded together, at most */
    int n_decode;  /* beams that are computed together, at most */
    size_t n_scores;
} Plan;

static Plan plan_job(const Model *model, const Job *job)
{
    int longest = 0, longest_limit = 0, n_heads = 1;
    for (int64_t i = 0; i < job->n_sentences; i++) {
        const int length = (int)(job->starts[i + 1] - job->starts[i]);
        if (length > longest) longest = length;
        if (job->limits[i] > longest_limit) longest_limit = job->limits[i];
    }
    for (int i = 0; i < model->settings.n_decoder_layers; i++)
        if (model->decoder[i].self.n_heads > n_heads) n_heads = model->decoder[i].self.n_heads;
    Plan plan = {.n_at_once = job->max_rows / job->beam > 0 ? job->max_rows / job->beam : 1};
    if (plan.n_at_once > job->n_sentences) plan.n_at_once = (int)job->n_sentences;
    plan.n_encode = longest > ENCODE_ROWS ? longest : ENCODE_ROWS;
    plan.n_decode = plan.n_at_once * job->beam;
    plan.n_scores = (size_t)n_heads * ROUND_UP(longest > longest_limit ? longest : longest_limit, LANES) + LANES;
    return plan;
}

static void close_workspace(Workspace *work, Matrix *listed, int32_t *forbidden)
{
    void *buffers[] = {work->x, work->normed, work->wide, work->heads, work->update, work->scores, work->logits,
                       work->log_probs, work->forbidden_logits, work->ids, work->n_choices, work->bytes,
                       work->byte_scales, listed->bytes ? (void *)listed->bytes : (void *)listed->weights, forbidden};
    for (size_t i = 0; i < sizeof(buffers) / sizeof(*buffers); i++) release(buffers[i]);
}

/* Allocate every buffer of a call; the caller closes the workspace whatever this returns. */
static int open_workspace(const Model *model, const Job *job, const Plan *plan, Workspace *work, Matrix *listed,
                          int32_t **forbidden)
{
    const Settings *s = &model->settings;
    const size_t n_rows = (size_t)(plan->n_encode > plan->n_decode ? plan->n_encode : plan->n_decode);
    const size_t n_decode = (size_t)plan->n_decode, f = sizeof(float);
    const size_t n_columns = ROUND_UP((size_t)(job->n_outputs ? job->n_outputs : s->vocab_size), PANEL);
    work->model = model;
    work->x = allocate_zeroed(n_rows * model->width_stride, f);
    work->normed = allocate_zeroed(n_rows * model->width_stride, f);
    work->wide = allocate_zeroed(n_rows * model->wide_stride + PANEL, f);
    work->heads = allocate_zeroed(n_rows * model->heads_stride + LANES, f);
    work->update = allocate_zeroed(n_rows * model->width_stride, f);
    work->scores = allocate_zeroed(plan->n_scores, f);
    work->logits = allocate_zeroed(LOGITS_ROWS * n_columns, f);
    work->log_probs = allocate_zeroed(n_decode * job->beam, f);
    work->ids = allocate_zeroed(n_decode * job->beam, sizeof(int));
    work->n_choices = allocate_zeroed(n_decode, sizeof(int));
    work->forbidden_logits = allocate_zeroed((size_t)job->n_forbidden, f);
    work->bytes = allocate_zeroed(n_rows, (size_t)model->bytes_stride);
    work->byte_scales = allocate_zeroed(model->settings.is_int8 ? n_rows : 0, f);
    *forbidden = allocate_zeroed((size_t)job->n_forbidden, sizeof(int32_t));
    if (!work->x || !work->normed || !work->wide || !work->heads || !work->update || !work->scores || !work->logits ||
        !work->log_probs || !work->ids || !work->n_choices || !work->forbidden_logits || !work->bytes ||
        !work->byte_scales || !*forbidden)
        return MH_NO_MEMORY;
    if (job->n_outputs && !gather_columns(&model->output, job->outputs, job->n_outputs, listed)) return MH_NO_MEMORY;
    work->output = job->n_outputs ? listed : &model->output;
    for (int i = 0; i < job->n_forbidden; i++) {
        const int column = column_of(job, job->forbidden[i]);
        if (column >= 0) (*forbidden)[work->n_forbidden++] = column;
    }
    work->forbidden = *forbidden;
    return MH_OK;
}

/* Open and encode as many new sentences as fit, from sentence *next on. */
static int admit(const Workspace *work, const Job *job, const Plan *plan, Sentence **sentences, int *n_open, int64_t *next)
{
    int n_free = plan->n_at_once - *n_open;
    /* Encoding a single sentence is slow: new ones are admitted when a quarter of the slots is free, or all. */
    while (*next < job->n_sentences && n_free && (4 * n_free >= plan->n_at_once || !*n_open)) {
        int n_new = 0, n_tokens = 0;
        while (*next < job->n_sentences && n_new < n_free) {
            const int length = (int)(job->starts[*next + 1] - job->starts[*next]);
            if (n_new && n_tokens + length > plan->n_encode) break;
            Sentence *one = open_sentence(work->model, job, (int)*next);
            if (!one) { *n_open += n_new; return MH_NO_MEMORY; }
            sentences[*n_open + n_new++] = one;
            n_tokens += length;
            ++*next;
        }
        const int code = encode(work, job, sentences + *n_open, n_new);
        *n_open += n_new;
        n_free -= n_new;
        if (code) return code;
    }
    return MH_OK;
}

/* Decode every sentence of a job; on MH_INVALID `message` (MESSAGE_SIZE characters) names the fault. */
EXPORT int mh_generate(const Model *model, const Job *job, char *message)
{
    message[0] = 0;
    int code = check_job(&model->settings, job, message);
    if (code || !job->n_sentences) return code;
    const Plan plan = plan_job(model, job);
    Workspace work = {0};
    Matrix listed = {0};
    int32_t *forbidden = NULL;
    int n_open = 0;
    int64_t next = 0;
    Sentence **sentences = allocate_zeroed((size_t)plan.n_at_once, sizeof(Sentence *));
    code = sentences ? open_workspace(model, job, &plan, &work, &listed, &forbidden) : MH_NO_MEMORY;
    while (!code && (next < job->n_sentences || n_open)) {
        if (*job->stop) code = MH_STOPPED;
        if (!code) code = admit(&work, job, &plan, sentences, &n_open, &next);
        if (!code) code = step(&work, job, sentences, &n_open);
    }
    for (int i = 0; i < n_open; i++) close_sentence(model, sentences[i]);
    close_workspace(&work, &listed, forbidden);
    release(sentences);
    return code;
}
