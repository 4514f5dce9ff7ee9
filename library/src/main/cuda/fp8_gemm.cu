// The gated product of 8-bit operands with scales, on Hopper: as hopper_gemm.cu, a persistent grid in which one warp loads
// and two warpgroups multiply.
//
// The tensor cores' own sums of 8-bit products keep about 13 bits of fraction, so each sum runs over one block of 128 k,
// k = 0, 32, 64, 96, and is then added to a second set of registers, in fp32 and in the order of the blocks. With scales by
// block it is multiplied with both scales first; other scales are applied in the end. So the bits of C depend on A, B, their
// scales and K alone, whatever the tile and whenever its rows came.
//
// Rows of A have their scales in front, so these arrive with the first columns. The loading warp copies them into shared
// memory, under the same barriers as A and B. B is [N, K].
#ifndef B_E5M2
#define B_E5M2 0 // 0: B is e4m3
#endif
#ifndef OUT
#define OUT 0 // C is 0: fp32, 1: fp16, 2: bf16
#endif
#ifndef STAGES
#define STAGES 4
#endif
#include "schedule.cuh"

#define OUT_FP32 (OUT == 0)
#if OUT == 1
#define OUT_TYPE "f16"
#else
#define OUT_TYPE "bf16"
#endif
#if B_E5M2
#define B_TYPE "e5m2"
#else
#define B_TYPE "e4m3"
#endif

constexpr int TILE_ROWS = 128; // of one block; a warpgroup takes half
constexpr int TILE_COLS = 256; // of the widest tile
constexpr int K_BLOCK = 128; // bytes, the width of the swizzle
constexpr int GATE_COLS = 64; // columns of A in the unit of gates
constexpr int SLAB_COLS = 128; // B comes in slabs of so many columns of C; a warpgroup multiplies by one at a time
constexpr int A_BYTES = TILE_ROWS * K_BLOCK;
constexpr int SLAB_BYTES = SLAB_COLS * K_BLOCK;
constexpr int STAGE_BYTES = A_BYTES + TILE_COLS * K_BLOCK;
constexpr int CONSUMER_GROUPS = 2;
constexpr int THREADS = 128 * (1 + CONSUMER_GROUPS);
constexpr int C_BOX_BYTES = 64 * 128; // 64 rows of C, 128 bytes each
constexpr int C_BOX_COLS = OUT_FP32 ? 32 : 64;
constexpr int C_BOXES = 2; // of a warpgroup, filled in turn
constexpr int SCALE_BYTES = TILE_ROWS * 4; // of the rows of a tile
constexpr int FULL_ARRIVALS = 1 + 32; // who tells of bytes to come, and each thread of the warp that copies scales
static_assert(SCALE_BYTES + TILE_COLS * 4 <= STAGES * SCALE_BYTES, "there is room for the scales of a tile's columns");

#include "warpgroup.cuh"

// Where scales are, and how many there are. 24 bytes.
struct Scales {
    const float* ofB; // by column, or by block of K and of columns
    int colBlocks;    // of 128 columns of B
    int byBlock;      // 0: one scale for each row of A and each column of B
    int valuesAt;     // bytes of a row of A before its elements
    int kBlocks;      // of 128 columns of A
};

// Shared memory: stages, boxes of C, scales of rows (of a stage, or of a tile with those of its columns), scales of blocks
// of B by stage, barriers.
struct Shared {
    u32 stages, staging, scales, blockScales;
    Barriers barriers;
    u32 scalesFree; // the barrier of a tile's scales
};

__device__ __forceinline__ void multiplyAdd(float (&d)[64], u64 a, u64 b, int add) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3." B_TYPE " {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, %64, %65, p, 1, 1; }"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
          "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
          "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
          "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
          "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
          "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
          "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
          "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
        : "l"(a), "l"(b), "r"(add));
}

__device__ __forceinline__ void copyScale(u32 to, const void* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}

__device__ __forceinline__ float sharedFloat(u32 at) {
    float value;
    asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(at) : "memory");
    return value;
}

// Gates count columns of rows with their scales.
__device__ __forceinline__ int dueAt(const Schedule& s, const Scales& scales, int gate, int end) {
    if (gate >= end) return scales.kBlocks;
    return max(0, s.gates[gate].kBlock * GATE_COLS - scales.valuesAt) / K_BLOCK;
}

// One warp: its first thread waits at gates and loads A and B, and all copy scales.
__device__ void produce(
    const Schedule& s, const TensorMap* aMaps, const Source* sources, const TensorMap* bMap, const Scales& scales,
    const Shared& shared, int n) {
    const u32 rank = CLUSTER > 1 ? clusterRank() : 0;
    const int lane = threadIdx.x % 32;
    const Barriers barriers = shared.barriers;
    Ring ring;
    ring.parity = 1; // a fresh barrier counts as released
    u32 scaleParity = 1;
    int known = -1;
    for (int t = firstTile(); t < s.tileCount; t += tileStride()) {
        const Tile tile = tileAt(s, t);
        const TensorMap* aMap = aMaps + tile.source;
        if (tile.source != known) {
            // The map lies in global memory, where another operator may have had one before.
            known = tile.source;
            asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(aMap) : "memory");
        }
        const u64 pitch = sources[tile.source].pitch;
        const int aRow = tile.sourceRow + TILE_ROWS * rank;
        // A tile may be taller than what is left of the source: rows beyond it get the scale of the last one.
        const int lastRow = tile.sourceRow + tile.rows - 1;
        const u8* rows = (const u8*)sources[tile.source].data;
        const u32 bytes = A_BYTES + tile.width * K_BLOCK;
        int gate = tile.gate;
        const int gateEnd = tile.gate + tile.gates;
        int due = dueAt(s, scales, gate, gateEnd);
        for (int kb = 0; kb < scales.kBlocks; kb++) {
            if (kb >= due) {
                do {
                    if (lane == 0) awaitGate(s, t, gate);
                    gate++;
                    due = dueAt(s, scales, gate, gateEnd);
                } while (kb >= due);
                // The acquire above ordered ordinary loads of one thread; the bulk copies below are of another proxy, and
                // scales are copied by all threads.
                asm volatile("fence.proxy.async.global;" ::: "memory");
                __syncwarp();
            }
            awaitPhase(barriers.empty(ring.stage), ring.parity);
            const u32 full = barriers.full(ring.stage);
            const u32 a = shared.stages + ring.stage * STAGE_BYTES;
            if (lane == 0) {
                expectBytes(full, bytes);
                load(a, aMap, kb * K_BLOCK, aRow, full);
                // The blocks of a cluster take slabs in turn, so that each loads as much, also where there is only one.
                for (int slab = (rank + kb) % CLUSTER; slab < tile.width / SLAB_COLS; slab += CLUSTER) {
                    const u32 b = a + A_BYTES + slab * SLAB_BYTES;
                    if (CLUSTER > 1) {
                        loadForAll(b, bMap, kb * K_BLOCK, tile.col + slab * SLAB_COLS, full);
                    } else {
                        load(b, bMap, kb * K_BLOCK, tile.col + slab * SLAB_COLS, full);
                    }
                }
            }
            if (scales.byBlock) {
                const u32 to = shared.scales + ring.stage * SCALE_BYTES + lane * 4;
#pragma unroll
                for (int i = 0; i < TILE_ROWS / 32; i++) {
                    copyScale(to + i * 128, rows + min(aRow + lane + i * 32, lastRow) * pitch + kb * 4);
                }
                if (lane < TILE_COLS / SLAB_COLS) {
                    const int block = min(tile.col / SLAB_COLS + lane, scales.colBlocks - 1);
                    copyScale(shared.blockScales + (ring.stage * 2 + lane) * 4, scales.ofB + kb * scales.colBlocks + block);
                }
            } else if (kb + 1 == scales.kBlocks) {
                awaitPhase(shared.scalesFree, scaleParity);
                scaleParity ^= 1;
#pragma unroll 1
                for (int i = lane; i < TILE_ROWS; i += 32) {
                    copyScale(shared.scales + i * 4, rows + min(aRow + i, lastRow) * pitch);
                }
#pragma unroll 1
                for (int i = lane; i < TILE_COLS; i += 32) {
                    copyScale(shared.scales + SCALE_BYTES + i * 4, scales.ofB + min(tile.col + i, n - 1));
                }
            }
            // This thread's part of the barrier, once its copies have landed.
            asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(full) : "memory");
            ring.advance();
        }
    }
    // A peer may still signal this block's barriers: stay until every stage has come back.
    if (CLUSTER > 1) {
        for (int i = 0; i < STAGES; i++) {
            awaitPhase(barriers.empty(ring.stage), ring.parity);
            ring.advance();
        }
    }
}

template <int WIDTH, bool BY_BLOCK>
__device__ __forceinline__ void multiply(
    const Tile& tile, const Scales& scales, const Shared& shared, Ring& ring, int group, const Output& out) {
    constexpr int SUMS_OF_SLAB = SLAB_COLS / 2;
    float sum[WIDTH / 2];
#pragma unroll
    for (int i = 0; i < WIDTH / 2; i++) sum[i] = 0.0f;
    float part[SUMS_OF_SLAB];
    const Barriers barriers = shared.barriers;
    const u32 aLow = descriptorLow(shared.stages + group * (A_BYTES / CONSUMER_GROUPS), 16);
    const u32 bLow = descriptorLow(shared.stages + A_BYTES, 16);
    const int row = group * 64 + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
    int last = 0;
    for (int kb = 0; kb < scales.kBlocks; kb++) {
        awaitPhase(barriers.full(ring.stage), ring.parity);
        const u32 a = aLow + ring.stage * (STAGE_BYTES / 16);
        const u32 b = bLow + ring.stage * (STAGE_BYTES / 16);
        float upper = 1.0f, lower = 1.0f;
#pragma unroll
        for (int slab = 0; slab < WIDTH / SLAB_COLS; slab++) {
            wgmmaFence();
#pragma unroll
            for (int k = 0; k < K_BLOCK / 32; k++) {
                multiplyAdd(part, descriptor(a + k * 2), descriptor(b + slab * (SLAB_BYTES / 16) + k * 2), k > 0);
            }
            wgmmaCommit();
            float ofUpper = 1.0f, ofLower = 1.0f;
            if (BY_BLOCK) {
                if (slab == 0) {
                    upper = sharedFloat(shared.scales + ring.stage * SCALE_BYTES + row * 4);
                    lower = sharedFloat(shared.scales + ring.stage * SCALE_BYTES + row * 4 + 32);
                }
                const float ofB = sharedFloat(shared.blockScales + (ring.stage * 2 + slab) * 4);
                ofUpper = upper * ofB;
                ofLower = lower * ofB;
            }
            wgmmaWait<0>();
            // The sums are there from here on: nothing that reads them may move before.
#pragma unroll
            for (int i = 0; i < SUMS_OF_SLAB; i++) asm volatile("" : "+f"(part[i])::"memory");
            if (slab + 1 == WIDTH / SLAB_COLS) {
                // Scales are read by ordinary loads: one thread may give the stage back once all have read theirs.
                if (BY_BLOCK) syncGroup(group);
                if (BY_BLOCK || kb + 1 < scales.kBlocks) {
                    release(barriers, ring.stage);
                } else {
                    last = ring.stage;
                }
            }
#pragma unroll
            for (int i = 0; i < SUMS_OF_SLAB; i++) {
                float& to = sum[slab * SUMS_OF_SLAB + i];
                to = BY_BLOCK ? __fmaf_rn(part[i], i & 2 ? ofLower : ofUpper, to) : __fadd_rn(to, part[i]);
            }
        }
        ring.advance();
    }
    if (!BY_BLOCK) {
        const float upper = sharedFloat(shared.scales + row * 4), lower = sharedFloat(shared.scales + row * 4 + 32);
#pragma unroll
        for (int i = 0; i < WIDTH / 2; i += 4) {
            float even, odd;
            asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(even), "=f"(odd)
                : "r"(shared.scales + SCALE_BYTES + (i * 2 + threadIdx.x % 4 * 2) * 4) : "memory");
            sum[i] = sum[i] * upper * even;
            sum[i + 1] = sum[i + 1] * upper * odd;
            sum[i + 2] = sum[i + 2] * lower * even;
            sum[i + 3] = sum[i + 3] * lower * odd;
        }
        // Scales of the next tile may come once all threads have read these.
        syncGroup(group);
        if (threadIdx.x % 128 == 0) arriveAt(shared.scalesFree, CLUSTER > 1 ? clusterRank() : 0);
        release(barriers, last);
    }
    storeTile<WIDTH>(sum, tile, group, out);
}

// All tiles of one width from t on; the next tile after them.
template <int WIDTH, bool BY_BLOCK>
__device__ __forceinline__ int multiplyAll(
    int t, const Schedule& s, const Scales& scales, const Shared& shared, Ring& ring, int group, const Output& out) {
    for (; t < s.tileCount; t += tileStride()) {
        const Tile tile = tileAt(s, t);
        if (tile.width != WIDTH) break;
        const bool leads = threadIdx.x == 0 && blockIdx.x % CLUSTER == 0;
        if (leads) tileBegins(s, t);
        multiply<WIDTH, BY_BLOCK>(tile, scales, shared, ring, group, out);
        if (leads) tileEnds(s, t);
    }
    return t;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gated_gemm(
    const __grid_constant__ Schedule s, const TensorMap* aMaps, const __grid_constant__ TensorMap bMap,
    const __grid_constant__ TensorMap cMap, void* c, u64 cPitch, int n, int boxes, const Source* sources,
    const __grid_constant__ Scales scales) {
    extern __shared__ __align__(1024) u8 memory[];
    Shared shared;
    shared.stages = sharedAddress(memory);
    shared.staging = shared.stages + STAGES * STAGE_BYTES;
    shared.scales = shared.staging + CONSUMER_GROUPS * C_BOXES * C_BOX_BYTES;
    shared.blockScales = shared.scales + STAGES * SCALE_BYTES;
    shared.barriers = {shared.blockScales + STAGES * 8};
    shared.scalesFree = shared.barriers.base + STAGES * 16;
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrierInit(shared.barriers.full(i), FULL_ARRIVALS);
            barrierInit(shared.barriers.empty(i), CONSUMER_GROUPS * CLUSTER);
        }
        barrierInit(shared.scalesFree, CONSUMER_GROUPS);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (CLUSTER > 1) {
        asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
    } else {
        __syncthreads();
    }
    // By way of a shuffle, so that the compiler knows it to be the same in all threads of a warp and keeps descriptors in
    // uniform registers. Without it, working them out between the instructions took 15% of the time.
    const int group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
    if (group == CONSUMER_GROUPS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 56;");
        if (threadIdx.x / 32 == 4 * CONSUMER_GROUPS) {
            produce(s, aMaps, sources, &bMap, scales, shared, n);
        } else if (blockIdx.x == 0 && threadIdx.x / 32 == 4 * CONSUMER_GROUPS + 1) {
            watchArrivals(s);
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 224;");
        const Output out = {&cMap, c, cPitch, n, boxes != 0, shared.staging};
        Ring ring;
        int t = firstTile();
        // Tiles of one width after the other: a branch inside one loop would cost registers.
        if (scales.byBlock) {
            t = multiplyAll<TILE_COLS, true>(t, s, scales, shared, ring, group, out);
            multiplyAll<TILE_COLS / 2, true>(t, s, scales, shared, ring, group, out);
        } else {
            t = multiplyAll<TILE_COLS, false>(t, s, scales, shared, ring, group, out);
            multiplyAll<TILE_COLS / 2, false>(t, s, scales, shared, ring, group, out);
        }
        // Shared memory must outlast the copies out of it.
        if (threadIdx.x % 128 == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
