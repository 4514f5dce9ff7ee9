// What the kernels for few rows have in common: a warp that brings A as its gates open, and products turned over, whose
// rows are the columns of C. A kernel defines first: K_BLOCK, the columns of a block; BLOCKS in a stage, which begins with the
// first of A; A_STEP, the bytes from one to the next; STAGE_BYTES, STAGES and ROW_GROUPS, eights of rows of a warp.
#pragma once
#include "mma.cuh"
#include "hopper.cuh"

constexpr u64 KEPT_BYTES = 32 << 20; // a larger B does not stay in L2 until it is read again

// One lane of a warp that is here as a whole. Where the compiler sees one thread go its own way, it writes a loop around
// each copy: 64 copies took 10 us that way, and 6 us this way.
__device__ __forceinline__ bool isElected() {
    u32 elected;
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffff; selp.u32 %0, 1, 0, p; }" : "=r"(elected));
    return elected != 0;
}

// What is read once need not stay in L2: 4096 x 14336 takes 30.1 us instead of 31.6 (H200).
__device__ __forceinline__ u64 policyOfB(u64 bytes) {
    u64 policy;
    if (bytes > KEPT_BYTES) {
        asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    } else {
        asm volatile("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    }
    return policy;
}

// One warp, of which one thread waits at the gates.
__device__ void bringA(const Schedule& s, const TensorMap* aMaps, u32 stages, Barriers barriers) {
    Ring ring;
    ring.parity = 1;
    int known = -1;
    for (int t = firstTile(); t < s.tileCount; t += tileStride()) {
        const Tile tile = tileAt(s, t);
        const TensorMap* aMap = aMaps + tile.source;
        if (tile.source != known) {
            // The map lies in global memory, where another operator may have had one before.
            known = tile.source;
            asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(aMap) : "memory");
        }
        int gate = tile.gate;
        const int gateEnd = tile.gate + tile.gates;
        int due = gate < gateEnd ? s.gates[gate].kBlock : s.kBlocks;
        for (int first = 0; first < s.kBlocks; first += BLOCKS) {
            awaitPhase(barriers.empty(ring.stage), ring.parity);
            const u32 stage = stages + ring.stage * STAGE_BYTES;
            for (int kb = first; kb < min(first + BLOCKS, s.kBlocks); kb++) {
                if (kb >= due) {
                    do {
                        if (threadIdx.x % 32 == 0) awaitGate(s, t, gate);
                        gate++;
                        due = gate < gateEnd ? s.gates[gate].kBlock : s.kBlocks;
                    } while (kb >= due);
                    // The acquire above ordered ordinary loads; the bulk copies below are of another proxy, and by
                    // whichever lane is elected.
                    __syncwarp();
                    asm volatile("fence.proxy.async.global;" ::: "memory");
                }
                if (isElected()) {
                    load(stage + (kb - first) * A_STEP, aMap, kb * K_BLOCK, tile.sourceRow, barriers.full(ring.stage));
                }
            }
            ring.advance();
        }
    }
}

// By all lanes of a warp, which have read what they need of it. Release: pairs with the wait of the warps that fill it.
__device__ __forceinline__ void giveBack(Barriers barriers, int stage) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barriers.empty(stage)) : "memory");
    }
}

// A thread has two rows of C in two columns, for every eight rows.
__device__ __forceinline__ void store(
    const float (&d)[ROW_GROUPS][4], const Tile& tile, int firstRow, int firstCol, void* c, u64 pitch, int n) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < ROW_GROUPS * 4; i++) {
        const int row = firstRow + i / 4 * 8 + lane % 4 * 2 + (i & 1);
        const int col = tile.col + firstCol + lane / 4 + (i & 2 ? 8 : 0);
        if (row < tile.rows && col < n) {
#if OUT_FP32
            ((float*)c)[(tile.row + row) * pitch + col] = d[i / 4][i % 4];
#else
            ((u16*)c)[(tile.row + row) * pitch + col] = (u16)rounded(d[i / 4][i % 4], 0.0f);
#endif
        }
    }
}

// By all threads: `warps` give each stage back.
__device__ __forceinline__ void setUp(Barriers barriers, int warps) {
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrierInit(barriers.full(i), 1);
            barrierInit(barriers.empty(i), warps);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
}

// The number of this thread's warp, by way of a shuffle, so that the compiler knows it to be the same in all of its threads.
__device__ __forceinline__ int warpNumber() { return __shfl_sync(0xffffffff, threadIdx.x / 32, 0); }
