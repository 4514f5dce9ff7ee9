/*
 * What a user has today: MPI and cblas_sgemm, one after the other.
 *
 *     mpirun -n RANKS mpi_sgemm gather|reduce-scatter|all-reduce|all-reduce-norm M N K
 *     mpirun -n RANKS mpi_sgemm experts M HIDDEN WIDTH EXPERTS PER_ROW
 *
 * gather: MPI_Allgatherv of the rows of A, then the product on every rank. The others: every rank
 * has a part of K; the product of that part, then MPI_Reduce_scatter or MPI_Allreduce of C. With norm,
 * every rank then adds a residual to C and normalizes its rows by the root mean square; this counts
 * as MPI.
 *
 * experts: MPI_Allgatherv of the rows of A; for each of the rank's experts, its rows are collected and multiplied
 * by its three matrices (SwiGLU between), and added by their weights; then MPI_Reduce_scatter of the sums.
 * Which rows an expert has is worked out beforehand: the time to tell other ranks is not counted.
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
enum { A = 1, B = 2, ROW_WEIGHTS = 3, COL_WEIGHTS = 4, RESIDUAL = 5, NORM_WEIGHTS = 6,
       ROUTES = 7, ROUTE_WEIGHTS = 8, EXPERTS_BS = 16 };

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

enum work { GATHER, REDUCE_SCATTER, ALL_REDUCE, ALL_REDUCE_NORM, EXPERTS };

enum { WORKS = 5 };

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

/* How the rows of a matrix of so many columns are spread over the ranks. */
static void spread_rows(int width) {
    counts = malloc(sizeof(int) * (size_t)ranks);
    starts = malloc(sizeof(int) * (size_t)ranks);
    for (int r = 0; r < ranks; r++) {
        starts[r] = first_of(r, m) * width;
        counts[r] = first_of(r + 1, m) * width - starts[r];
    }
    first_row = first_of(rank, m);
    own_rows = first_of(rank + 1, m) - first_row;
}

static void prepare(void) {
    spread_rows(work == GATHER ? k : n);
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

/* Of all experts, and those of this rank. */
static int experts, per_row, first_expert, own_experts;

/* By own expert: its matrices, and how many rows it has, which, and with which weights. */
static float **gates, **ups, **downs, **row_weights;
static int *row_counts, **rows_of;

/* Rows of one expert: of A, both its products, and the result. */
static float *collected, *gate_rows, *up_rows, *down_rows;

/* The same as ExpertsCase in the Java sources. */
static int expert_of(int row, int choice) {
    int first = (int)((value(ROUTES, (uint64_t)row) + 0.5f) * (float)experts);
    return (first + choice * (experts / per_row)) % experts;
}

static float weight_of(int row, int choice) {
    return (1 + value(ROUTE_WEIGHTS, (uint64_t)row * per_row + choice)) / (float)per_row;
}

static float *matrix_of(int salt, size_t count) {
    float *matrix = floats(count);
    for (size_t i = 0; i < count; i++) {
        matrix[i] = value((uint32_t)salt, i);
    }
    return matrix;
}

static void prepare_experts(void) {
    int width = k, hidden = n;
    first_expert = first_of(rank, experts);
    own_experts = first_of(rank + 1, experts) - first_expert;
    spread_rows(width);
    shard = floats((size_t)own_rows * width);
    for (size_t i = 0; i < (size_t)own_rows * width; i++) {
        shard[i] = value(A, (uint64_t)first_row * width + i);
    }
    gathered = zeros((size_t)m * width);
    c = zeros((size_t)m * width);
    sums = zeros((size_t)own_rows * width);
    gates = malloc(sizeof(float *) * (size_t)own_experts);
    ups = malloc(sizeof(float *) * (size_t)own_experts);
    downs = malloc(sizeof(float *) * (size_t)own_experts);
    row_weights = malloc(sizeof(float *) * (size_t)own_experts);
    rows_of = malloc(sizeof(int *) * (size_t)own_experts);
    row_counts = calloc((size_t)own_experts, sizeof(int));
    for (int e = 0; e < own_experts; e++) {
        int salt = EXPERTS_BS + 3 * (first_expert + e);
        gates[e] = matrix_of(salt, (size_t)width * hidden);
        ups[e] = matrix_of(salt + 1, (size_t)width * hidden);
        downs[e] = matrix_of(salt + 2, (size_t)hidden * width);
        rows_of[e] = malloc(sizeof(int) * (size_t)m);
        row_weights[e] = floats((size_t)m);
    }
    for (int row = 0; row < m; row++) {
        for (int i = 0; i < per_row; i++) {
            int e = expert_of(row, i) - first_expert;
            if (e >= 0 && e < own_experts) {
                rows_of[e][row_counts[e]] = row;
                row_weights[e][row_counts[e]++] = weight_of(row, i);
            }
        }
    }
    collected = zeros((size_t)m * width);
    gate_rows = zeros((size_t)m * hidden);
    up_rows = zeros((size_t)m * hidden);
    down_rows = zeros((size_t)m * width);
}

static void sgemm(int rows, int cols, int depth, const float *a, const float *right, float *into) {
    cblas_sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, rows, cols, depth, 1, a, depth, right, cols, 0,
                into, cols);
}

static void multiply_experts(void) {
    int width = k, hidden = n;
    memset(c, 0, (size_t)m * width * sizeof(float));
    for (int e = 0; e < own_experts; e++) {
        int count = row_counts[e];
        for (int i = 0; i < count; i++) {
            memcpy(collected + (size_t)i * width, gathered + (size_t)rows_of[e][i] * width,
                   (size_t)width * sizeof(float));
        }
        if (count == 0) {
            continue;
        }
        sgemm(count, hidden, width, collected, gates[e], gate_rows);
        sgemm(count, hidden, width, collected, ups[e], up_rows);
        for (size_t i = 0; i < (size_t)count * hidden; i++) {
            gate_rows[i] = gate_rows[i] / (1 + expf(-gate_rows[i])) * up_rows[i];
        }
        sgemm(count, width, hidden, gate_rows, downs[e], down_rows);
        for (int i = 0; i < count; i++) {
            float *sum = c + (size_t)rows_of[e][i] * width;
            const float *product = down_rows + (size_t)i * width;
            for (int j = 0; j < width; j++) {
                sum[j] += row_weights[e][i] * product[j];
            }
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
    case EXPERTS:
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
    if (work == EXPERTS) {
        multiply_experts();
        return;
    }
    cblas_sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, own_k, 1, gathered, own_k, b, n, 0, c,
                n);
}

static void step(int calls) {
    int64_t own[3] = {0, 0, 0};
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < calls; i++) {
        int64_t start = now_ns();
        int gathers = work == GATHER || work == EXPERTS;
        gathers ? communicate() : multiply();
        int64_t middle = now_ns();
        gathers ? multiply() : communicate();
        int64_t end = now_ns();
        int64_t first = middle - start, second = end - middle;
        own[0] += gathers ? first : second;
        own[1] += gathers ? second : first;
        if (work == EXPERTS) {
            MPI_Reduce_scatter(c, sums, counts, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            own[0] += now_ns() - end;
            end = now_ns();
        }
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
    int scattered = work == REDUCE_SCATTER || work == EXPERTS;
    int cols = work == EXPERTS ? k : n;
    int from = scattered ? first_row : 0;
    double sum = 0;
    for (int i = 0; i < (scattered ? own_rows : m); i++) {
        double row = 0;
        for (int j = 0; j < cols; j++) {
            row += (double)sums[(size_t)i * cols + j] * value(COL_WEIGHTS, j);
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
    static const char *const works[] = {"gather", "reduce-scatter", "all-reduce", "all-reduce-norm",
                                        "experts"};
    int known = 0;
    for (int i = 0; i < WORKS; i++) {
        if (argc == (i == EXPERTS ? 7 : 5) && strcmp(argv[1], works[i]) == 0) {
            work = (enum work)i;
            known = 1;
        }
    }
    if (!known) {
        fprintf(stderr, "expected gather, reduce-scatter, all-reduce or all-reduce-norm, then M N K; or"
                        " experts, then M HIDDEN WIDTH EXPERTS PER_ROW\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    m = atoi(argv[2]);
    n = atoi(argv[3]);
    k = atoi(argv[4]);
    if (work == EXPERTS) {
        experts = atoi(argv[5]);
        per_row = atoi(argv[6]);
        prepare_experts();
    } else {
        prepare();
    }
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
