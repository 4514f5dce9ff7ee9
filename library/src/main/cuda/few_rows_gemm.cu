// The gated product of few rows on Hopper, which takes as long as B takes to be read.
//
// A tile has up to ROWS rows of A and COLS columns of C. Some warps multiply, 16 columns and all rows or half of them
// each. The product of a warp has 16 rows at least, so it computes C turned over: its rows are the columns of C. A block
// is 64 columns of A and B, and a stage in shared memory holds BLOCKS of them.
//
// B waits for nothing: before the gates open, one warp has filled all stages with it. Another warp waits at the gates and
// brings A. (To bring more of B into L2 meanwhile, by prefetches of 8 to 40 MB, gained nothing on an H200.)
//
// Each sum runs over k = 0, 16, 32, ... in one register and has the same bits as in hopper_gemm.cu: the product of a warp
// adds as that of a warpgroup does. That one takes 59 cycles for 8 rows, this one 25 (H200).
#ifndef ROWS
#define ROWS 8 // that there is room for: 8 or 32
#endif
#ifndef COLS
#define COLS 64 // of a tile: 64 or 32
#endif
#ifndef BLOCKS
#define BLOCKS 2 // of a stage, an even number
#endif
#ifndef STAGES
#define STAGES 6
#endif
constexpr int K_BLOCK = 64; // 128 bytes, the width of the swizzle
constexpr int A_BYTES = ROWS * K_BLOCK * 2;
constexpr int B_BYTES = COLS * K_BLOCK * 2;
constexpr int BLOCK_BYTES = A_BYTES + B_BYTES;
constexpr int A_STEP = BLOCK_BYTES; // from one block to the next
constexpr int STAGE_BYTES = BLOCK_BYTES * BLOCKS;
constexpr int COL_GROUPS = COLS / 16; // of a warp
constexpr int ROW_PARTS = COLS == 32 && ROWS == 32 ? 2 : 1; // more warps: a product of each waits for the one before it
constexpr int ROW_GROUPS = ROWS / 8 / ROW_PARTS; // of a warp
constexpr int WARPS = COL_GROUPS * ROW_PARTS; // that multiply
constexpr int THREADS = 32 * (WARPS + 3);
constexpr int STEPS = K_BLOCK / 16;
static_assert(A_BYTES % 1024 == 0 && BLOCK_BYTES % 1024 == 0, "the swizzle counts from a multiple of 1024 bytes");
static_assert(BLOCKS % 2 == 0, "blocks are read into two sets of registers in turn");

#include "few_rows.cuh"

__device__ __forceinline__ void loadB(u32 to, const TensorMap* bMap, int k, int col, u32 barrier, u64 policy) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint"
        " [%0], [%1, {%2, %3}], [%4], %5;"
        ::"r"(to), "l"(bMap), "r"(B_TRANSPOSED ? k : col), "r"(B_TRANSPOSED ? col : k), "r"(barrier), "l"(policy) : "memory");
}

// One warp.
__device__ void bringB(const Schedule& s, const TensorMap* bMap, int tilesAcross, u32 stages, Barriers barriers) {
    Ring ring;
    ring.parity = 1; // a fresh barrier counts as given back
    const u64 policy = policyOfB((u64)tilesAcross * s.kBlocks * B_BYTES);
    for (int t = firstTile(); t < s.tileCount; t += tileStride()) {
        const Tile tile = tileAt(s, t);
        for (int first = 0; first < s.kBlocks; first += BLOCKS) {
            awaitPhase(barriers.empty(ring.stage), ring.parity);
            const u32 full = barriers.full(ring.stage);
            const u32 stage = stages + ring.stage * STAGE_BYTES;
            const int blocks = min(BLOCKS, s.kBlocks - first);
            if (isElected()) {
                expectBytes(full, blocks * BLOCK_BYTES);
                for (int i = 0; i < blocks; i++) {
                    loadB(stage + i * BLOCK_BYTES + A_BYTES, bMap, (first + i) * K_BLOCK, tile.col, full, policy);
                }
            }
            ring.advance();
        }
    }
}

// What a warp multiplies, and where a lane reads its part of it, from the begin of a block on.
struct Places {
    int col; // the first of the tile's
    int row; // likewise
    u32 b[STEPS];
    u32 a[STEPS / 2]; // of two steps
};

__device__ __forceinline__ Places placesOf(int warp) {
    const int lane = threadIdx.x % 32, matrix = lane / 8, r = lane % 8;
    Places at = {warp % COL_GROUPS * 16, warp / COL_GROUPS * ROW_GROUPS * 8};
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        if (B_TRANSPOSED) {
            const int row = at.col + matrix % 2 * 8 + r;
            at.b[k] = A_BYTES + row * 128 + ((k * 2 + matrix / 2) ^ r) * 16;
        } else {
            const int row = k * 16 + matrix / 2 * 8 + r;
            const int piece = at.col / 8 + matrix % 2;
            // Rows of 64 bytes are swizzled two by two.
            at.b[k] = A_BYTES + row * COLS * 2 + (piece ^ (COLS == 64 ? r : r / 2)) * 16;
        }
        // Keeps the compiler from working it out again for each block, which took longer than the products.
        asm volatile("" : "+r"(at.b[k]));
    }
#pragma unroll
    for (int k = 0; k < STEPS / 2; k++) {
        at.a[k] = (at.row + r) * 128 + ((k * 4 + matrix) ^ r) * 16;
        asm volatile("" : "+r"(at.a[k]));
    }
    return at;
}

// 16 columns of A and B, as the instruction wants them: columns of C first.
struct Step {
    u32 b[4];
    u32 a[ROW_GROUPS][2];
};

__device__ __forceinline__ void readBlock(Step (&to)[STEPS], u32 block, const Places& at) {
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        if (B_TRANSPOSED) {
            ldmatrix(to[k].b, block + at.b[k]);
        } else {
            ldmatrixTransposed(to[k].b, block + at.b[k]);
        }
        if (k % 2 == 1) continue;
#pragma unroll
        for (int g = 0; g < ROW_GROUPS; g++) {
            u32 both[4];
            ldmatrix(both, block + at.a[k / 2] + g * 8 * 128);
            to[k].a[g][0] = both[0];
            to[k].a[g][1] = both[1];
            to[k + 1].a[g][0] = both[2];
            to[k + 1].a[g][1] = both[3];
        }
    }
}

__device__ __forceinline__ void multiplyStep(float (&d)[ROW_GROUPS][4], const Step& step) {
#pragma unroll
    for (int g = 0; g < ROW_GROUPS; g++) multiplyAdd(d[g], step.b, step.a[g][0], step.a[g][1]);
}

// The blocks of a stage, of which the first has been read, and the reads of the next stage's first one. A product waits
// for the one before it, and the next block is read meanwhile.
template <bool WHOLE>
__device__ __forceinline__ void multiplyStage(
    float (&d)[ROW_GROUPS][4], Step (&read)[2][STEPS], int blocks, bool last, u32 stages, Barriers barriers, Ring& ring,
    const Places& at) {
    const u32 stage = stages + ring.stage * STAGE_BYTES;
#pragma unroll
    for (int i = 0; i < BLOCKS; i++) {
        if (!WHOLE && i >= blocks) break;
        multiplyStep(d, read[i % 2][0]);
        if (i + 1 < (WHOLE ? BLOCKS : blocks)) {
            readBlock(read[(i + 1) % 2], stage + (i + 1) * BLOCK_BYTES, at);
        } else {
            giveBack(barriers, ring.stage);
            ring.advance();
            if (!last) {
                awaitPhase(barriers.full(ring.stage), ring.parity);
                readBlock(read[0], stages + ring.stage * STAGE_BYTES, at);
            }
        }
#pragma unroll
        for (int k = 1; k < STEPS; k++) multiplyStep(d, read[i % 2][k]);
    }
}

// A tile; leaves the ring behind its last stage.
__device__ __forceinline__ void multiply(
    const Schedule& s, float (&d)[ROW_GROUPS][4], u32 stages, Barriers barriers, Ring& ring, const Places& at) {
#pragma unroll
    for (int g = 0; g < ROW_GROUPS; g++) {
#pragma unroll
        for (int i = 0; i < 4; i++) d[g][i] = 0.0f;
    }
    Step read[2][STEPS];
    awaitPhase(barriers.full(ring.stage), ring.parity);
    readBlock(read[0], stages + ring.stage * STAGE_BYTES, at);
    int left = s.kBlocks;
    for (; left >= BLOCKS; left -= BLOCKS) {
        multiplyStage<true>(d, read, BLOCKS, left == BLOCKS, stages, barriers, ring, at);
    }
    if (left > 0) multiplyStage<false>(d, read, left, true, stages, barriers, ring, at);
}

// For times of tiles: when the last warp has multiplied.
__device__ __forceinline__ void syncMultiplying() { asm volatile("bar.sync 1, %0;" ::"n"(32 * WARPS) : "memory"); }

extern "C" __global__ void __launch_bounds__(THREADS) gated_gemm(
    const __grid_constant__ Schedule s, const TensorMap* aMaps, const __grid_constant__ TensorMap bMap,
    const __grid_constant__ TensorMap, void* c, u64 cPitch, int n, int) {
    extern __shared__ __align__(1024) u8 shared[];
    const u32 stages = sharedAddress(shared);
    const Barriers barriers = {stages + STAGES * STAGE_BYTES};
    setUp(barriers, WARPS);
    const int warp = warpNumber();
    if (warp < WARPS) {
        const Places at = placesOf(warp);
        Ring ring;
        for (int t = firstTile(); t < s.tileCount; t += tileStride()) {
            if (threadIdx.x == 0) tileBegins(s, t);
            float d[ROW_GROUPS][4];
            multiply(s, d, stages, barriers, ring, at);
            store(d, tileAt(s, t), at.row, at.col, c, cPitch, n);
            if (s.busy != nullptr) syncMultiplying();
            if (threadIdx.x == 0) tileEnds(s, t);
        }
    } else if (warp == WARPS) {
        bringB(s, &bMap, (n + COLS - 1) / COLS, stages, barriers);
    } else if (warp == WARPS + 1) {
        bringA(s, aMaps, stages, barriers);
    } else if (blockIdx.x == 0) {
        watchArrivals(s);
    }
}
