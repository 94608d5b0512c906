/* SPDX-License-Identifier: MIT */
/* Corrections; see learn.h. Times have a long tail upwards (other processes, page faults, a core that sleeps), so a step up is smaller than
   a step down: what is learnt is nearer to the best of many calls than to their mean, and one slow call does not send a class away for
   good. */
#include "dispatch/learn.h"

#include <math.h>

#define UNIT 65536.0
#define LEAST (1.0 / 64)                 /* corrections beyond these are errors of measurement */
#define MOST 64.0
#define LONG_S 0.05                      /* what a first call has to do besides is small against this */
#define FIRST_OCTAVE 10                  /* 2^10 operations: class 0 */

static double least(double a, double b) { return a < b ? a : b; }
static double most(double a, double b) { return a > b ? a : b; }
static double within(double x, double low, double high) { return most(low, least(x, high)); }

int gpb_learn_class(const gpb_call *call)
{
    double m = (double)call->m, n = (double)call->n, k = (double)call->k;
    double small = least(m, least(n, k)), large = most(m, most(n, k));
    int octave;
    frexp(2 * m * n * k * (double)call->batch * (call->uplo == 'G' ? 1 : 0.5), &octave);
    octave = octave <= FIRST_OCTAVE ? 0 : octave - FIRST_OCTAVE;
    if (octave >= GPB_LEARN_OCTAVES) octave = GPB_LEARN_OCTAVES - 1;
    int shape = small <= 8 ? 0 : 8 * small <= large ? 1 : 2;
    return shape * GPB_LEARN_OCTAVES + octave;
}

static gpb_learn_cell cell_of(const gpb_learn *learnt, int class)
{
    return atomic_load_explicit(&learnt->cell[class], memory_order_relaxed);
}

/* A class that has been seen twice may have been unlucky twice. */
static double believed(gpb_learn_cell cell)
{
    double ratio = cell.ratio / UNIT;
    return cell.seen < 2 ? 1 : cell.seen < 4 ? least(ratio, 2) : ratio;
}

/* A class seen often enough speaks for itself. Else a cell's weight halves with every octave of distance, and is an eighth for another
   shape; "as modelled" weighs as much as a quarter of a call. */
double gpb_learn_ratio(const gpb_learn *learnt, int class)
{
    const gpb_learn_cell own = cell_of(learnt, class);
    if (own.seen == GPB_LEARN_SURE) return believed(own);
    const int octave = class % GPB_LEARN_OCTAVES;
    double sum = 0.25, weights = 0.25;
    for (int shape = 0; shape < GPB_LEARN_SHAPES; shape++)
        for (int far = -8; far <= 8; far++) {
            if (octave + far < 0 || octave + far >= GPB_LEARN_OCTAVES) continue;
            const gpb_learn_cell cell = cell_of(learnt, shape * GPB_LEARN_OCTAVES + octave + far);
            if (cell.seen < 2) continue;
            const bool other = shape != class / GPB_LEARN_OCTAVES;
            const double weight = (cell.seen - 1) / (double)(1 << ((far < 0 ? -far : far) + 3 * other));
            sum += weight * believed(cell), weights += weight;
        }
    return sum / weights;
}

static gpb_learn_cell next(gpb_learn_cell old, double ratio, double measured_s)
{
    gpb_learn_cell cell = { old.ratio, old.seen < GPB_LEARN_SURE ? old.seen + 1 : old.seen };
    if (old.seen == 0 && measured_s < LONG_S) return cell;
    double step = 1.0 / old.seen, now = old.ratio / UNIT;
    if (now == 0) now = ratio;
    else now *= 1 + most(step, 1.0 / GPB_LEARN_SURE) * (within(ratio / now, 0.5, old.seen < 4 ? 2 : 1.25) - 1);
    cell.ratio = (uint32_t)(UNIT * within(now, LEAST, MOST));
    if (cell.seen == 1) cell.seen = 2;
    return cell;
}

bool gpb_learn_add(gpb_learn *learnt, int class, double modelled_s, double measured_s)
{
    if (!(modelled_s > 0 && measured_s > 0)) return false;
    gpb_learn_cell old = cell_of(learnt, class), cell;
    do cell = next(old, within(measured_s / modelled_s, LEAST, MOST), measured_s);
    while (!atomic_compare_exchange_weak_explicit(&learnt->cell[class], &old, cell, memory_order_relaxed, memory_order_relaxed));
    const double before = believed(old), after = believed(cell);
    return (cell.seen == GPB_LEARN_SURE && old.seen < GPB_LEARN_SURE) || after > 1.1 * before || after < 0.9 * before;
}

bool gpb_learn_set(gpb_learn *learnt, int class, gpb_learn_cell cell)
{
    if (class < 0 || class >= GPB_LEARN_CLASSES || cell.seen < 2 || cell.seen > GPB_LEARN_SURE
        || cell.ratio < UNIT * LEAST || cell.ratio > UNIT * MOST)
        return false;
    atomic_store_explicit(&learnt->cell[class], cell, memory_order_relaxed);
    return true;
}
