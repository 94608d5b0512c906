/* SPDX-License-Identifier: MIT */
/* Corrections; see learn.h. Measured times have a long upward tail (other processes, page faults, a core that
   sleeps), so a step up is smaller than a step down. The learnt value is nearer to the best of many calls
   than to their mean, and one slow call does not send a class away for good. */
#include "dispatch/learn.h"

#include <math.h>

#include "dispatch/numbers.h"

#define UNIT 65536.0
#define MIN_RATIO (1.0 / 64)             /* corrections beyond these bounds are measurement errors */
#define MAX_RATIO 64.0
/* Optimism about a class that was never tried. It costs at most two calls, each at most 1.5 times slower. */
#define UNTRIED 0.7
#define LONG_S 0.05                      /* beside this, the extra work of a first call is small */
#define WAYS 4u                          /* places that a size may take: a power of two */
/* After this many calls a size is known well enough to try the other side, and to believe that side at
   once. */
#define KNOWN 4
/* A size begins with the best of three calls, because the first one on the side that was idle takes longer
   (the host's threads sleep). Where calls of a size come five in a row, at least two of the three follow each
   other. */
#define TRIES 3
#define FIRST_OCTAVE 10                  /* 2^10 operations: class 0 */

static int class_of(const gpb_call *call)
{
    double m = (double)call->m, n = (double)call->n, k = (double)call->k;
    double small = min(m, min(n, k)), large = max(m, max(n, k));
    int octave;
    frexp(2 * m * n * k * (double)call->batch * (call->x[GPB_C].uplo == 'G' ? 1 : 0.5), &octave);
    octave = octave <= FIRST_OCTAVE ? 0 : octave - FIRST_OCTAVE;
    if (octave >= GPB_LEARN_OCTAVES) octave = GPB_LEARN_OCTAVES - 1;
    int shape = small <= 8 ? 0 : 8 * small <= large ? 1 : 2;
    const int type = (int)call->routine * GPB_TYPES + (int)call->type;
    return type * GPB_LEARN_OF_TYPE + shape * GPB_LEARN_OCTAVES + octave;
}

uint64_t gpb_learn_hash(const gpb_call *g)
{
    static const uint64_t golden = 0x9e3779b97f4a7c15;
    const unsigned char letters[] = { (unsigned char)g->x[GPB_A].trans, (unsigned char)g->x[GPB_B].trans,
                                      (unsigned char)g->x[GPB_C].uplo };
    const bool a = g->x[GPB_A].structure != GPB_GENERAL, b = g->x[GPB_B].structure != GPB_GENERAL;
    const unsigned char sides[] = { a ? (unsigned char)g->x[GPB_A].uplo : 0,
                                    b ? (unsigned char)g->x[GPB_B].uplo : 0 };
    const uint64_t rest = (uint64_t)letters[0] | (uint64_t)letters[1] << 8 | (uint64_t)letters[2] << 16
                          | (uint64_t)(g->beta != 0) << 24
                          | (uint64_t)g->type << 32 | (uint64_t)g->routine << 40
                          | (uint64_t)sides[0] << 48 | (uint64_t)sides[1] << 56;
    uint64_t hash = ((uint64_t)g->m * golden ^ (uint64_t)g->n) * golden;
    hash = ((hash ^ hash >> 32 ^ (uint64_t)g->k) * golden ^ (uint64_t)g->batch) * golden;
    hash = (hash ^ hash >> 32 ^ rest) * golden;
    return hash ^ hash >> 32;
}

gpb_learn_key gpb_learn_key_of(const gpb_call *call)
{
    const uint64_t hash = gpb_learn_hash(call);
    return (gpb_learn_key){ class_of(call), (uint32_t)(hash % GPB_LEARN_KEPT), (uint32_t)(hash >> 40) };
}

static gpb_learn_cell cell_of(const gpb_learn *learnt, int class)
{
    return atomic_load_explicit(&learnt->cell[class], memory_order_relaxed);
}

/* The place of this size. If it has none: the place that it may take, which is that of the least seen of the
   sizes there, or one by chance if all are sure. */
static uint32_t place_of(const gpb_learn *learnt, gpb_learn_key key)
{
    uint32_t best = key.place ^ key.tag % WAYS, least_seen = GPB_LEARN_SURE;
    for (uint32_t way = 0; way < WAYS; way++) {
        const gpb_learn_cell size = atomic_load_explicit(&learnt->kept[key.place ^ way],
                                                         memory_order_relaxed);
        if (size.seen && size.tag == key.tag) return key.place ^ way;
        if (size.seen < least_seen) {
            best = key.place ^ way;
            least_seen = size.seen;
        }
    }
    return best;
}

/* What is known of this size; all zero if it is not there. */
static gpb_learn_cell size_of(const gpb_learn *learnt, gpb_learn_key key)
{
    const gpb_learn_cell size = atomic_load_explicit(&learnt->kept[place_of(learnt, key)],
                                                     memory_order_relaxed);
    return size.tag == key.tag ? size : (gpb_learn_cell){ 0 };
}

/* A class that was seen only twice may have been unlucky twice. */
static double believed(gpb_learn_cell cell)
{
    double ratio = cell.ratio / UNIT;
    return cell.seen < 2 ? 1 : cell.seen < 4 ? min(ratio, 2) : ratio;
}

/* A class that was seen often enough decides alone. Else a cell's weight halves with every octave of distance
   and is a sixteenth for another shape, and "as modelled" weighs a quarter of a call. */
static double ratio_of_class(const gpb_learn *learnt, int class)
{
    const gpb_learn_cell own = cell_of(learnt, class);
    if (own.seen == GPB_LEARN_SURE) return believed(own);
    const int octave = class % GPB_LEARN_OCTAVES, first = class / GPB_LEARN_OF_TYPE * GPB_LEARN_OF_TYPE;
    double sum = 0.25, weights = 0.25;
    for (int shape = 0; shape < GPB_LEARN_SHAPES; shape++)
        for (int far = -8; far <= 8; far++) {
            if (octave + far < 0 || octave + far >= GPB_LEARN_OCTAVES) continue;
            const gpb_learn_cell cell = cell_of(learnt, first + shape * GPB_LEARN_OCTAVES + octave + far);
            if (cell.seen < 2) continue;
            const bool other = shape != (class - first) / GPB_LEARN_OCTAVES;
            const double weight = (cell.seen - 1) / (double)(1 << ((far < 0 ? -far : far) + 4 * other));
            sum += weight * believed(cell);
            weights += weight;
        }
    return sum / weights;
}

double gpb_learn_ratio(const gpb_learn *learnt, gpb_learn_key key, bool curious)
{
    const gpb_learn_cell size = size_of(learnt, key);
    const bool known = size.seen >= 2;
    const double own = size.ratio / UNIT, share = (size.seen - 1.0) / (GPB_LEARN_SURE - 1);
    if (known && share == 1) return own;
    const double others = ratio_of_class(learnt, key.class);
    if (known) return own < others ? own : others + (own - others) * share;
    return curious && cell_of(learnt, key.class).seen < 2 ? UNTRIED * others : others;
}

void gpb_learn_facts(const gpb_learn *host, const gpb_learn *gpu, gpb_learn_key key, gpb_facts *facts)
{
    const gpb_learn_cell on_host = size_of(host, key), on_gpu = size_of(gpu, key);
    const bool host_known = on_host.seen >= KNOWN, gpu_known = on_gpu.seen >= KNOWN;
    facts->learnt.host_ratio = gpu_known && on_host.seen >= TRIES ? on_host.ratio / UNIT
                               : gpb_learn_ratio(host, key, true);
    facts->learnt.gpu_ratio = host_known && on_gpu.seen >= TRIES ? on_gpu.ratio / UNIT
                              : gpb_learn_ratio(gpu, key, false);
    facts->learnt.try_host = gpu_known && on_host.seen < TRIES && on_gpu.tries < TRIES;
    facts->learnt.try_gpu = host_known && on_gpu.seen < TRIES && on_host.tries < TRIES;
}

void gpb_learn_tried(gpb_learn *learnt, gpb_learn_key key)
{
    gpb_learn_cell size = size_of(learnt, key);
    if (size.seen < KNOWN || size.tries == TRIES) return;
    size.tries++;
    atomic_store_explicit(&learnt->kept[place_of(learnt, key)], size, memory_order_relaxed);
}

static uint32_t stored(double ratio) { return (uint32_t)(UNIT * clamp(ratio, MIN_RATIO, MAX_RATIO)); }

/* Adds a call to a cell that has been seen before. */
static gpb_learn_cell step(gpb_learn_cell cell, double ratio)
{
    const double now = cell.ratio / UNIT, share = max(1.0 / cell.seen, 1.0 / GPB_LEARN_SURE);
    cell.ratio = stored(now * (1 + share * (clamp(ratio / now, 0.5, cell.seen < 4 ? 2 : 1.25) - 1)));
    cell.seen += cell.seen < GPB_LEARN_SURE;
    return cell;
}

/* The first call of a class counts only if it should be long, because its extra work is then small beside the
   rest. */
static gpb_learn_cell next_of_class(gpb_learn_cell cell, double ratio, double modelled_s)
{
    if (cell.seen >= 2) return step(cell, ratio);
    if (cell.seen == 0 && modelled_s < LONG_S) return (gpb_learn_cell){ .seen = 1 };
    return (gpb_learn_cell){ .ratio = stored(ratio), .seen = 2 };
}

/* A size begins with the best of its first calls. It may take the place of another size. */
static gpb_learn_cell next_of_size(gpb_learn_cell cell, uint32_t tag, double ratio)
{
    if (cell.tag != tag || cell.seen == 0)
        return (gpb_learn_cell){ .ratio = stored(ratio), .seen = 1, .tag = tag };
    if (cell.seen >= TRIES) return step(cell, ratio);
    cell.ratio = stored(min(ratio, cell.ratio / UNIT));
    cell.seen++;
    return cell;
}

/* Two threads may add at once. Then one call may be forgotten or counted for another size, but each cell is
   whole. */
bool gpb_learn_add(gpb_learn *learnt, gpb_learn_key key, double modelled_s, double measured_s)
{
    if (!(modelled_s > 0 && measured_s > 0)) return false;
    const double ratio = clamp(measured_s / modelled_s, MIN_RATIO, MAX_RATIO);
    const gpb_learn_cell old = cell_of(learnt, key.class), cell = next_of_class(old, ratio, modelled_s);
    const uint32_t place = place_of(learnt, key);
    const gpb_learn_cell size = atomic_load_explicit(&learnt->kept[place], memory_order_relaxed);
    atomic_store_explicit(&learnt->cell[key.class], cell, memory_order_relaxed);
    atomic_store_explicit(&learnt->kept[place], next_of_size(size, key.tag, ratio), memory_order_relaxed);
    const double before = believed(old), after = believed(cell);
    return (cell.seen == GPB_LEARN_SURE && old.seen < GPB_LEARN_SURE) || after > 1.1 * before
           || after < 0.9 * before;
}

bool gpb_learn_set(gpb_learn *learnt, int class, gpb_learn_cell cell)
{
    if (class < 0 || class >= GPB_LEARN_CLASSES || cell.seen < 2 || cell.seen > GPB_LEARN_SURE
        || cell.ratio < UNIT * MIN_RATIO || cell.ratio > UNIT * MAX_RATIO)
        return false;
    cell.tag = 0;
    atomic_store_explicit(&learnt->cell[class], cell, memory_order_relaxed);
    return true;
}
