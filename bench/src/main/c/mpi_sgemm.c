/*
 * What a user has today: MPI and cblas_sgemm, one after the other.
 *
 *     mpirun -n RANKS mpi_sgemm gather|reduce-scatter|all-reduce|all-reduce-norm M N K
 *
 * gather: MPI_Allgatherv of the rows of A, then the product on every rank. The others: every rank
 * has a part of K; the product of that part, then MPI_Reduce_scatter or MPI_Allreduce of C. With norm,
 * every rank then adds a residual to C and normalizes its rows by the root mean square; this counts
 * as MPI.
 *
 * Rank 0 reads lines and answers each with one:
 *     s COUNT   so many calls in a row; nanoseconds of MPI, the product and both in one of them,
 *               each of the rank that took longest
 *     c         the weighted sum of the result, and "same" where all ranks have the same one
 * and leaves at the end of its input. "ready" comes first.
 */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Declared here so that no header package is needed. */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 };
void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

enum { GO_TAG = 7, POLL_US = 5000 };
enum { A = 1, B = 2, ROW_WEIGHTS = 3, COL_WEIGHTS = 4, RESIDUAL = 5, NORM_WEIGHTS = 6 };

static const double EPSILON = 1e-5;

/* The same numbers as MadeUpData.value in the Java sources. */
static float value(uint32_t salt, uint64_t index) {
    uint32_t h = (uint32_t)index * 0x9E3779B1u + salt * 0x85EBCA77u;
    h ^= h >> 15;
    h *= 0x2C1B3C6Du;
    h ^= h >> 12;
    h *= 0x297A2D39u;
    h ^= h >> 15;
    return (float)(h >> 16) * 0x1p-16f - 0.5f;
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static float *floats(size_t count) {
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, count * sizeof(float) + 4096) != 0) {
        fprintf(stderr, "no memory for %zu floats\n", count);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    return memory;
}

enum work { GATHER, REDUCE_SCATTER, ALL_REDUCE, ALL_REDUCE_NORM };

enum { WORKS = 4 };

static enum work work;
static int rank, ranks, m, n, k;
static int own_k, first_row, own_rows;
static float *shard, *gathered, *b, *c, *sums, *residual, *norm_weights;
static int *counts, *starts;

/* Where part r of a whole begins; the first parts have what does not come out even. */
static int first_of(int r, int whole) {
    return r * (whole / ranks) + (r < whole % ranks ? r : whole % ranks);
}

static float *zeros(size_t count) {
    /* Touched before anything is timed. */
    return memset(floats(count), 0, count * sizeof(float));
}

static void prepare(void) {
    int width = work == GATHER ? k : n;
    counts = malloc(sizeof(int) * (size_t)ranks);
    starts = malloc(sizeof(int) * (size_t)ranks);
    for (int r = 0; r < ranks; r++) {
        starts[r] = first_of(r, m) * width;
        counts[r] = first_of(r + 1, m) * width - starts[r];
    }
    first_row = first_of(rank, m);
    own_rows = first_of(rank + 1, m) - first_row;
    int first_k = work == GATHER ? 0 : first_of(rank, k);
    own_k = work == GATHER ? k : first_of(rank + 1, k) - first_k;
    int shard_row = work == GATHER ? first_row : 0;
    int shard_rows = work == GATHER ? own_rows : m;
    shard = floats((size_t)shard_rows * own_k);
    for (int i = 0; i < shard_rows; i++) {
        for (int j = 0; j < own_k; j++) {
            shard[(size_t)i * own_k + j] = value(A, (uint64_t)(shard_row + i) * k + first_k + j);
        }
    }
    b = floats((size_t)own_k * n);
    for (size_t i = 0; i < (size_t)own_k * n; i++) {
        b[i] = value(B, (uint64_t)first_k * n + i);
    }
    gathered = work == GATHER ? zeros((size_t)m * k) : shard;
    c = zeros((size_t)m * n);
    sums = work == GATHER ? c : zeros((size_t)(work == REDUCE_SCATTER ? own_rows : m) * n);
    if (work == ALL_REDUCE_NORM) {
        residual = floats((size_t)m * n);
        for (size_t i = 0; i < (size_t)m * n; i++) {
            residual[i] = value(RESIDUAL, i);
        }
        norm_weights = floats((size_t)n);
        for (int j = 0; j < n; j++) {
            norm_weights[j] = value(NORM_WEIGHTS, (uint64_t)j);
        }
    }
}

static void normalize(void) {
    for (int i = 0; i < m; i++) {
        float *row = sums + (size_t)i * n;
        const float *added = residual + (size_t)i * n;
        /* Several sums, so that compilers use vectors. */
        float parts[16] = {0};
        for (int j = 0; j < n; j++) {
            row[j] += added[j];
        }
        int whole = n / 16 * 16;
        for (int j = 0; j < whole; j += 16) {
            for (int lane = 0; lane < 16; lane++) {
                parts[lane] += row[j + lane] * row[j + lane];
            }
        }
        for (int j = whole; j < n; j++) {
            parts[0] += row[j] * row[j];
        }
        double squares = 0;
        for (int j = 0; j < 16; j++) {
            squares += parts[j];
        }
        float scale = (float)(1 / sqrt(squares / n + EPSILON));
        for (int j = 0; j < n; j++) {
            row[j] *= scale * norm_weights[j];
        }
    }
}

static void communicate(void) {
    switch (work) {
    case GATHER:
        MPI_Allgatherv(shard, counts[rank], MPI_FLOAT, gathered, counts, starts, MPI_FLOAT,
                       MPI_COMM_WORLD);
        break;
    case REDUCE_SCATTER:
        MPI_Reduce_scatter(c, sums, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        break;
    case ALL_REDUCE:
    case ALL_REDUCE_NORM:
        MPI_Allreduce(c, sums, m * n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        if (work == ALL_REDUCE_NORM) {
            normalize();
        }
        break;
    }
}

static void multiply(void) {
    cblas_sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, own_k, 1, gathered, own_k, b, n, 0, c,
                n);
}

static void step(int calls) {
    int64_t own[3] = {0, 0, 0};
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < calls; i++) {
        int64_t start = now_ns();
        work == GATHER ? communicate() : multiply();
        int64_t middle = now_ns();
        work == GATHER ? multiply() : communicate();
        int64_t end = now_ns();
        int64_t first = middle - start, second = end - middle;
        own[0] += work == GATHER ? first : second;
        own[1] += work == GATHER ? second : first;
        own[2] += end - start;
    }
    int64_t most[3];
    MPI_Reduce(own, most, 3, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%lld %lld %lld\n", (long long)most[0] / calls, (long long)most[1] / calls,
               (long long)most[2] / calls);
    }
}

static void check(void) {
    int scattered = work == REDUCE_SCATTER;
    int from = scattered ? first_row : 0;
    double sum = 0;
    for (int i = 0; i < (scattered ? own_rows : m); i++) {
        double row = 0;
        for (int j = 0; j < n; j++) {
            row += (double)sums[(size_t)i * n + j] * value(COL_WEIGHTS, j);
        }
        sum += row * value(ROW_WEIGHTS, from + i);
    }
    double least, most, all;
    MPI_Reduce(&sum, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&sum, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%.17g %s\n", scattered ? all : sum,
               scattered || fabs(most - least) == 0 ? "same" : "different");
    }
}

/* What to do, and how often: rank 0 tells the others. */
struct command {
    int what;
    int calls;
};

/* 's', 'c', or 'q' at the end. */
static struct command next_command(void) {
    struct command command = {'q', 1};
    if (rank == 0) {
        char line[64];
        if (fgets(line, sizeof line, stdin) != NULL) {
            command.what = line[0];
            if (command.what == 's') {
                int calls = atoi(line + 1);
                command.calls = calls > 0 ? calls : 1;
            }
        }
        for (int r = 1; r < ranks; r++) {
            MPI_Send(&command, 2, MPI_INT, r, GO_TAG, MPI_COMM_WORLD);
        }
        return command;
    }
    /* MPI's own waits burn a core, and others are being measured meanwhile: a look every 200 us cost
       them 7% on a Neoverse-N1. */
    for (int arrived = 0; !arrived;) {
        MPI_Iprobe(0, GO_TAG, MPI_COMM_WORLD, &arrived, MPI_STATUS_IGNORE);
        if (!arrived) {
            usleep(POLL_US);
        }
    }
    MPI_Recv(&command, 2, MPI_INT, 0, GO_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return command;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    static const char *const works[] = {"gather", "reduce-scatter", "all-reduce", "all-reduce-norm"};
    int known = 0;
    for (int i = 0; argc == 5 && i < WORKS; i++) {
        if (strcmp(argv[1], works[i]) == 0) {
            work = (enum work)i;
            known = 1;
        }
    }
    if (!known) {
        fprintf(stderr, "expected gather, reduce-scatter, all-reduce or all-reduce-norm, then M N K\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    m = atoi(argv[2]);
    n = atoi(argv[3]);
    k = atoi(argv[4]);
    prepare();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("ready\n");
        fflush(stdout);
    }
    for (struct command next = next_command(); next.what != 'q'; next = next_command()) {
        if (next.what == 's') {
            step(next.calls);
        } else if (next.what == 'c') {
            check();
        }
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
