/*
 * What a user has today: MPI_Allgatherv of the rows of A, then cblas_sgemm on every rank.
 *
 *     mpirun -n RANKS allgather_sgemm M N K
 *
 * Rank 0 reads lines and answers each with one:
 *     s   one gather and product; nanoseconds of the gather, the product and both,
 *         each of the rank that took longest
 *     c   the weighted sum of the product, and "same" where all ranks have the same one
 * and leaves at the end of its input. "ready" comes first.
 */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* Declared here so that no header package is needed. */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111 };
void cblas_sgemm(int order, int trans_a, int trans_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);

enum { GO_TAG = 7, POLL_US = 5000 };
enum { A = 1, B = 2, ROW_WEIGHTS = 3, COL_WEIGHTS = 4 };

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

static int rank, ranks, m, n, k;
static float *shard, *gathered, *b, *c;
static int *counts, *starts;

static void prepare(void) {
    counts = malloc(sizeof(int) * (size_t)ranks);
    starts = malloc(sizeof(int) * (size_t)ranks);
    int first_row = 0;
    for (int r = 0, start = 0; r < ranks; r++) {
        int rows = m / ranks + (r < m % ranks);
        if (r == rank) {
            first_row = start / k;
        }
        counts[r] = rows * k;
        starts[r] = start;
        start += counts[r];
    }
    shard = floats((size_t)counts[rank]);
    gathered = floats((size_t)m * k);
    b = floats((size_t)k * n);
    c = floats((size_t)m * n);
    for (size_t i = 0; i < (size_t)counts[rank]; i++) {
        shard[i] = value(A, (uint64_t)first_row * k + i);
    }
    for (size_t i = 0; i < (size_t)k * n; i++) {
        b[i] = value(B, i);
    }
    /* Touched before anything is timed. */
    for (size_t i = 0; i < (size_t)m * k; i++) {
        gathered[i] = 0;
    }
    for (size_t i = 0; i < (size_t)m * n; i++) {
        c[i] = 0;
    }
}

static void step(void) {
    MPI_Barrier(MPI_COMM_WORLD);
    int64_t start = now_ns();
    MPI_Allgatherv(shard, counts[rank], MPI_FLOAT, gathered, counts, starts, MPI_FLOAT,
                   MPI_COMM_WORLD);
    int64_t middle = now_ns();
    cblas_sgemm(ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, k, 1, gathered, k, b, n, 0, c, n);
    int64_t end = now_ns();
    int64_t own[3] = {middle - start, end - middle, end - start};
    int64_t most[3];
    MPI_Reduce(own, most, 3, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%lld %lld %lld\n", (long long)most[0], (long long)most[1], (long long)most[2]);
    }
}

static void check(void) {
    double sum = 0;
    for (int i = 0; i < m; i++) {
        double row = 0;
        for (int j = 0; j < n; j++) {
            row += (double)c[(size_t)i * n + j] * value(COL_WEIGHTS, j);
        }
        sum += row * value(ROW_WEIGHTS, i);
    }
    double least, most;
    MPI_Reduce(&sum, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&sum, &most, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%.17g %s\n", sum, fabs(most - least) == 0 ? "same" : "different");
    }
}

/* Rank 0 tells the others what to do: 's', 'c', or 'q' at the end. */
static int next_command(void) {
    int command = 'q';
    if (rank == 0) {
        char line[64];
        if (fgets(line, sizeof line, stdin) != NULL) {
            command = line[0];
        }
        for (int r = 1; r < ranks; r++) {
            MPI_Send(&command, 1, MPI_INT, r, GO_TAG, MPI_COMM_WORLD);
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
    MPI_Recv(&command, 1, MPI_INT, 0, GO_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return command;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc != 4) {
        fprintf(stderr, "expected M N K\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    m = atoi(argv[1]);
    n = atoi(argv[2]);
    k = atoi(argv[3]);
    prepare();
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        printf("ready\n");
        fflush(stdout);
    }
    for (int command = next_command(); command != 'q'; command = next_command()) {
        if (command == 's') {
            step();
        } else if (command == 'c') {
            check();
        }
        fflush(stdout);
    }
    MPI_Finalize();
    return 0;
}
