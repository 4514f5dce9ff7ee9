// The gated product on Hopper: a persistent grid in which one warp loads and two warpgroups multiply.
//
// The loading warp brings 64 columns of A and B at a time into a ring of stages in shared memory (bulk tensor copies that
// complete on an mbarrier), and it alone knows of arrival: before it loads columns that a chunk brings, it waits for that
// chunk's flag. Two blocks of a cluster work on rows above each other and share every load of B.
//
// Each sum runs over k = 0, 16, 32, ... in one register, whatever the tile's width and place and whenever its rows came,
// so the bits of C depend on A, B and K alone. With SUMS a tile may start from sums in memory instead of zero: they come
// through the same ring of stages, before the first columns of A, and are fp32 like the registers. So K can be cut at
// any multiple of 16 without a trace.
#include "wgmma.cuh"

#define OUT_TYPE IN_TYPE // where it is not fp32

constexpr int TILE_ROWS = 128; // of one block; a warpgroup takes half
constexpr int TILE_COLS = 256;
constexpr int K_BLOCK = 64; // 128 bytes, the width of the swizzle
constexpr int SLAB_COLS = 64; // B comes in slabs of so many columns of C
constexpr int A_BYTES = TILE_ROWS * K_BLOCK * 2;
constexpr int SLAB_BYTES = SLAB_COLS * K_BLOCK * 2;
constexpr int B_BYTES = TILE_COLS * K_BLOCK * 2;
constexpr int STAGE_BYTES = A_BYTES + B_BYTES;
#ifndef STAGES
#define STAGES 4
#endif
constexpr int CONSUMER_GROUPS = 2;
constexpr int THREADS = 128 * (1 + CONSUMER_GROUPS);
constexpr int C_BOX_BYTES = 64 * 128; // 64 rows of C, 128 bytes each
constexpr int C_BOX_COLS = OUT_FP32 ? 32 : 64;
constexpr int C_BOXES = 2; // of a warpgroup, filled in turn
constexpr int SUM_COLS = 64; // columns of sums in a stage, as two boxes of 32 for each warpgroup
constexpr int SUM_BYTES = TILE_ROWS * SUM_COLS * 4;
[[maybe_unused]] constexpr int SIGNAL_BLOCK = 4; // a tile is counted after so many K blocks of the next one: its stores have ended by then
static_assert(SUM_BYTES <= STAGE_BYTES, "a stage holds them");

#include "warpgroup.cuh"

// What a kernel of sums loads besides: none of it in another one.
struct SumMaps {
    const TensorMap* start; // of the sums that tiles start from
    const TensorMap* bMaps; // of B, by part of K, where there are several
    const struct Part* parts;
};

// One thread.
__device__ void produce(
    const Schedule& s, const TensorMap* aMaps, const TensorMap* firstB, const SumMaps& sums, u32 stages, Barriers barriers) {
    const u32 rank = CLUSTER > 1 ? clusterRank() : 0;
    Ring ring;
    ring.parity = 1; // a fresh barrier counts as released
    int known = -1;
    const TensorMap* bMap = firstB;
    for (int t = firstTile(); t < s.tileCount; t += tileStride()) {
        const Tile tile = tileAt(s, t);
        const TensorMap* aMap = aMaps + tile.source;
        if (tile.source != known) {
            // The map lies in global memory, where another operator may have had one before.
            known = tile.source;
            asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(aMap) : "memory");
        }
        const int aRow = tile.sourceRow + TILE_ROWS * rank;
        const int slabs = tile.width / SLAB_COLS;
        const u32 bytes = A_BYTES + tile.width * K_BLOCK * 2;
        int gate = tile.gate;
        const int gateEnd = tile.gate + tile.gates;
        int due = gate < gateEnd ? s.gates[gate].kBlock : s.kBlocks;
#if SUMS
        if (s.startsFromSums) {
            // All of its gates are about the sums.
            for (; gate < gateEnd; gate++) {
                awaitGate(s, t, gate);
            }
            due = s.kBlocks;
            asm volatile("fence.proxy.async.global;" ::: "memory");
            for (int col = 0; col < tile.width; col += SUM_COLS) {
                awaitPhase(barriers.empty(ring.stage), ring.parity);
                const u32 full = barriers.full(ring.stage);
                expectBytes(full, SUM_BYTES);
#pragma unroll
                for (int box = 0; box < SUM_BYTES / C_BOX_BYTES; box++) {
                    load(stages + ring.stage * STAGE_BYTES + box * C_BOX_BYTES, sums.start, tile.col + col + box % 2 * 32,
                         tile.row + TILE_ROWS * rank + box / 2 * 64, full);
                }
                ring.advance();
            }
        }
#endif
        int k = 0; // within a part of K, of which there may be several
#if SUMS
        const Part* part = sums.parts;
        if (part != nullptr) {
            bMap = sums.bMaps;
            if (t == firstTile()) {
                asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(bMap) : "memory");
            }
        }
#endif
        for (int kb = 0; kb < s.kBlocks; kb++) {
#if SUMS
            if (part != nullptr && kb == part->endBlock) {
                part++;
                k = 0;
                aMap++;
                bMap++;
                if (t == firstTile()) {
                    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(aMap) : "memory");
                    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(bMap) : "memory");
                }
            }
#endif
            if (kb >= due) {
                do {
                    awaitGate(s, t, gate);
                    gate++;
                    due = gate < gateEnd ? s.gates[gate].kBlock : s.kBlocks;
                } while (kb >= due);
                // The acquire above ordered ordinary loads; the bulk copies below are of another proxy.
                asm volatile("fence.proxy.async.global;" ::: "memory");
            }
            awaitPhase(barriers.empty(ring.stage), ring.parity);
            const u32 full = barriers.full(ring.stage);
            const u32 a = stages + ring.stage * STAGE_BYTES;
            expectBytes(full, bytes);
            load(a, aMap, k, aRow, full);
            for (int slab = rank; slab < slabs; slab += CLUSTER) {
                const u32 b = a + A_BYTES + slab * SLAB_BYTES;
                const int col = tile.col + slab * SLAB_COLS;
                const int x = B_TRANSPOSED ? k : col;
                const int y = B_TRANSPOSED ? col : k;
                if (CLUSTER > 1) {
                    loadForAll(b, bMap, x, y, full);
                } else {
                    load(b, bMap, x, y, full);
                }
            }
            k += K_BLOCK;
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

#if SUMS
// What a tile starts from: the boxes that the loading warp has brought, laid out as those of C.
template <int WIDTH>
__device__ __forceinline__ void loadSums(float (&d)[WIDTH / 2], u32 stages, Barriers barriers, Ring& ring, int group) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const int r = lane / 4, t = lane % 4;
#pragma unroll
    for (int part = 0; part < WIDTH / SUM_COLS; part++) {
        awaitPhase(barriers.full(ring.stage), ring.parity);
        const u32 boxes = stages + ring.stage * STAGE_BYTES + group * 2 * C_BOX_BYTES;
#pragma unroll
        for (int j = 0; j < SUM_COLS / 8; j++) {
            const int at = (part * SUM_COLS / 8 + j) * 4;
            const u32 chunk = (j % 4 * 2 + t / 2) ^ r;
            const u32 from = boxes + j / 4 * C_BOX_BYTES + (warp * 16 + r) * 128 + chunk * 16 + t % 2 * 8;
            asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(d[at]), "=f"(d[at + 1]) : "r"(from) : "memory");
            asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];" : "=f"(d[at + 2]), "=f"(d[at + 3]) : "r"(from + 1024) : "memory");
        }
        // Ordinary loads before, a copy by another proxy into the same place after: without the fence it overtakes them.
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        // The stage is given back by threads that speak for all.
        syncGroup(group);
        release(barriers, ring.stage);
        ring.advance();
    }
}

// Tells that this warpgroup's part of a tile is stored: by ordinary stores of all its threads, or by bulk copies of its
// leader, which wait_group without .read says have been written.
__device__ __forceinline__ void countPending(const Schedule& s, int& pending, int group) {
    if (pending < 0) return;
    syncGroup(group);
    if (threadIdx.x % 128 == 0) {
        asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        asm volatile("fence.proxy.async.global;" ::: "memory");
        countStored(s, pending);
    }
    pending = -1;
}
#endif

// Starts the products of one K block, which are then in flight.
template <int WIDTH>
__device__ __forceinline__ void multiplyBlock(
    float (&d)[WIDTH / 2], u32 stages, Barriers barriers, const Ring& ring, int group, int add) {
    awaitPhase(barriers.full(ring.stage), ring.parity);
    const u32 at = ring.stage * (STAGE_BYTES / 16);
    const u32 a = descriptorLow(stages + group * (A_BYTES / CONSUMER_GROUPS), 16) + at;
    const u32 b = descriptorLow(stages + A_BYTES, B_TRANSPOSED ? 16 : SLAB_BYTES) + at;
    wgmmaFence();
#pragma unroll
    for (int k = 0; k < K_BLOCK / 16; k++) {
        multiplyAdd(d, descriptor(a + k * 2), descriptor(b + k * (B_TRANSPOSED ? 2 : 128)), add || k > 0);
    }
    wgmmaCommit();
}

// `pending` is the counter of the tile before, and is left as that of this one.
template <int WIDTH>
__device__ __forceinline__ void multiply(
    const Schedule& s, int t, const Tile& tile, u32 stages, Barriers barriers, Ring& ring, int group, const Output& out,
    int& pending) {
    float d[WIDTH / 2];
    const int add = SUMS ? s.startsFromSums : 0;
#if SUMS
    if (add) {
        loadSums<WIDTH>(d, stages, barriers, ring, group);
    } else
#endif
    {
        // The products of the first block do not read these, but the compiler needs to know where they begin.
#pragma unroll
        for (int i = 0; i < WIDTH / 2; i++) d[i] = 0.0f;
    }
    // The first block stands by itself: in the loop, the compiler would take the lines above for part of what is in
    // flight, and let no two products be so.
    multiplyBlock<WIDTH>(d, stages, barriers, ring, group, add);
    int previous = ring.stage;
    ring.advance();
    for (int kb = 1; kb < s.kBlocks; kb++) {
#if SUMS
        if (kb == SIGNAL_BLOCK) countPending(s, pending, group);
#endif
        multiplyBlock<WIDTH>(d, stages, barriers, ring, group, 1);
        // One block of products stays in flight while the stage before it is given back.
        wgmmaWait<1>();
        release(barriers, previous);
        previous = ring.stage;
        ring.advance();
    }
    wgmmaWait<0>();
    // The sums are there from here on: nothing that reads them may move before.
#pragma unroll
    for (int i = 0; i < WIDTH / 2; i++) {
        asm volatile("" : "+f"(d[i])::"memory");
    }
    release(barriers, previous);
#if SUMS
    countPending(s, pending, group);
    pending = s.signals == nullptr ? -1 : __ldg(s.signals + t);
#endif
    storeTile<WIDTH>(d, tile, group, out);
}

// All tiles of one width from t on; the next tile after them.
template <int WIDTH>
__device__ __forceinline__ int multiplyAll(
    int t, const Schedule& s, u32 stages, Barriers barriers, Ring& ring, int group, const Output& out, int& pending) {
    for (; t < s.tileCount; t += tileStride()) {
        const Tile tile = tileAt(s, t);
        if (tile.width != WIDTH) break;
        const bool leads = threadIdx.x == 0 && blockIdx.x % CLUSTER == 0;
        if (leads) tileBegins(s, t);
        multiply<WIDTH>(s, t, tile, stages, barriers, ring, group, out, pending);
        if (leads) tileEnds(s, t);
    }
    return t;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1) gated_gemm(
    const __grid_constant__ Schedule s, const TensorMap* aMaps, const __grid_constant__ TensorMap bMap,
    const __grid_constant__ TensorMap cMap, void* c, u64 cPitch, int n, int boxes
#if SUMS
    , const __grid_constant__ TensorMap sumMap, const TensorMap* bMaps, const Part* parts
#endif
) {
    extern __shared__ __align__(1024) u8 shared[];
    const u32 stages = sharedAddress(shared);
    const u32 staging = stages + STAGES * STAGE_BYTES;
    const Barriers barriers = {staging + CONSUMER_GROUPS * C_BOXES * C_BOX_BYTES};
    if (threadIdx.x == 0) {
        for (int i = 0; i < STAGES; i++) {
            barrierInit(barriers.full(i), 1);
            barrierInit(barriers.empty(i), CONSUMER_GROUPS * CLUSTER);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    if (CLUSTER > 1) {
        asm volatile("barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;" ::: "memory");
    } else {
        __syncthreads();
    }
    // By way of a shuffle, so that the compiler knows it to be the same in all threads of a warp and keeps descriptors in
    // uniform registers. Without it, working them out between the instructions took 1% of the time.
    const int group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);
    if (group == CONSUMER_GROUPS) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 128 * CONSUMER_GROUPS) {
#if SUMS
            produce(s, aMaps, &bMap, {&sumMap, bMaps, parts}, stages, barriers);
#else
            produce(s, aMaps, &bMap, {}, stages, barriers);
#endif
        } else if (blockIdx.x == 0 && threadIdx.x / 32 == 4 * CONSUMER_GROUPS + 1) {
            watchArrivals(s);
        }
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
        const Output out = {&cMap, c, cPitch, n, boxes != 0, staging};
        Ring ring;
        int t = firstTile();
        int pending = -1;
        // Tiles of one width after the other: a branch inside one loop would cost registers.
        t = multiplyAll<TILE_COLS>(t, s, stages, barriers, ring, group, out, pending);
        t = multiplyAll<3 * TILE_COLS / 4>(t, s, stages, barriers, ring, group, out, pending);
        multiplyAll<TILE_COLS / 2>(t, s, stages, barriers, ring, group, out, pending);
#if SUMS
        countPending(s, pending, group);
#endif
        // Shared memory must outlast the copies out of it.
        if (threadIdx.x % 128 == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    }
}
