// The gated product of rows of 16 bits with a B in GGUF's blocks of 8 or 4 bits, on Hopper. For few rows it takes as long
// as B's small numbers take to be read.
//
// It is cut as in few_rows_gemm.cu: a tile has up to ROWS rows of A and 64 columns of C, 16 of which a warp multiplies,
// turned over. PackedBlocks on the Java side lays B out: a unit is 64 columns of C and as many of K as share a scale of
// scales, first the numbers, 16 columns and 64 of K behind each other in the order of the lanes that read them; then the
// scales. One bulk copy brings the units of a stage.
//
// The numbers of 32 columns of K become 16-bit floating point, exactly, and are multiplied with A; fp32 sums of these
// products, scaled in fp32, are added in the order of K. B is read so fast that one warp for 16 columns is too slow: each
// of PARTS warps multiplies every PARTS-th 64 columns of K, and their sums are added last, in order. The offsets of Q4_K
// multiply sums of A's rows, which are products with ones. (One more warp that makes these sums for all of a thread block
// was slower: 20.1 instead of 19.6 us for one row of 8192 x 8192, and 44 instead of 32 for 32; H200.) None of this depends
// on the number of rows.
#ifndef FORMAT
#define FORMAT 8 // the number that GGUF files have for it: 8 is Q8_0, 2 Q4_0, 12 Q4_K
#endif
#ifndef ROWS
#define ROWS 8 // that there is room for: 8 or 32
#endif
#ifndef BLOCKS
#define BLOCKS 4 // of 64 columns of A in a stage: a multiple of those of a unit
#endif
#ifndef STAGES
#define STAGES 4
#endif
constexpr bool EIGHT_BITS = FORMAT == 8;
constexpr bool SCALED_SCALES = FORMAT == 12;
constexpr int K_BLOCK = 64; // 128 bytes of A, the width of the swizzle
constexpr int COLS = 64; // of a tile
constexpr int GROUPS = COLS / 16; // of columns, of a warp each
constexpr int UNIT_BLOCKS = SCALED_SCALES ? 4 : 1;
constexpr int LANE_BYTES = EIGHT_BITS ? 32 : 16; // of the numbers of 16 columns and a block
constexpr int GROUP_BYTES = 32 * LANE_BYTES;
constexpr int NUMBER_BYTES = GROUPS * GROUP_BYTES; // of a block
constexpr int SCALE_BYTES = COLS * 2 * 2; // of a block: two for each column, of 16 bits together with their offset
constexpr int UNIT_BYTES = UNIT_BLOCKS * (NUMBER_BYTES + SCALE_BYTES) + (SCALED_SCALES ? COLS * 4 : 0);
constexpr int A_STEP = ROWS * K_BLOCK * 2;
constexpr int STAGE_UNITS = BLOCKS / UNIT_BLOCKS;
constexpr int UNITS_AT = BLOCKS * A_STEP;
constexpr int STAGE_BYTES = (UNITS_AT + STAGE_UNITS * UNIT_BYTES + 1023) / 1024 * 1024;
constexpr int ROW_GROUPS = ROWS / 8;
constexpr int PARTS = EIGHT_BITS ? 4 : 2; // of K
constexpr int WARPS = GROUPS * PARTS; // that multiply
constexpr int THREADS = 32 * (WARPS + 3);
constexpr int BARRIERS_AT = STAGES * STAGE_BYTES;
constexpr int PARTS_AT = BARRIERS_AT + 1024; // sums of all parts but the first
static_assert(BLOCKS % UNIT_BLOCKS == 0, "a stage is whole units");
static_assert(BLOCKS % PARTS == 0, "a block is of the same part in every stage");
static_assert(A_STEP % 1024 == 0, "the swizzle counts from a multiple of 1024 bytes");

#include "few_rows.cuh"

// One warp. A B has `units` along K.
__device__ void bringB(const Schedule& s, const u8* b, int n, u32 stages, Barriers barriers) {
    Ring ring;
    ring.parity = 1; // a fresh barrier counts as given back
    const int units = (s.kBlocks + UNIT_BLOCKS - 1) / UNIT_BLOCKS;
    const u64 policy = policyOfB((u64)((n + COLS - 1) / COLS) * units * UNIT_BYTES);
    for (int t = firstTile(); t < s.tileCount; t += tileStride()) {
        const Tile tile = tileAt(s, t);
        const u8* from = b + (u64)(tile.col / COLS) * units * UNIT_BYTES;
        for (int first = 0; first < s.kBlocks; first += BLOCKS) {
            awaitPhase(barriers.empty(ring.stage), ring.parity);
            const int blocks = min(BLOCKS, s.kBlocks - first);
            const u32 bytes = (blocks + UNIT_BLOCKS - 1) / UNIT_BLOCKS * UNIT_BYTES;
            if (isElected()) {
                expectBytes(barriers.full(ring.stage), blocks * A_STEP + bytes);
                asm volatile(
                    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;"
                    ::"r"(stages + ring.stage * STAGE_BYTES + UNITS_AT), "l"(from), "r"(bytes), "r"(barriers.full(ring.stage)),
                    "l"(policy) : "memory");
            }
            from += bytes;
            ring.advance();
        }
    }
}

template <int BYTES>
__device__ __forceinline__ void read(u32 (&to)[BYTES / 4], u32 from) {
    if (BYTES == 4) {
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(to[0]) : "r"(from));
    } else if (BYTES == 8) {
        asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "r"(from));
    } else {
#pragma unroll
        for (int i = 0; i < BYTES / 16; i++) {
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(to[i * 4]), "=r"(to[i * 4 + 1]), "=r"(to[i * 4 + 2]), "=r"(to[i * 4 + 3])
                         : "r"(from + i * 512));
        }
    }
}

// Two numbers of 16 bits less another two.
__device__ __forceinline__ u32 minus(u32 x, u32 y) {
    u32 d;
#if IN_BF16
    asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(d) : "r"(x), "r"(y));
#else
    asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(d) : "r"(x), "r"(y));
#endif
    return d;
}

// The operands of a step of 16 columns of K as floating point, whole numbers: an exponent is put before their bits, and
// what that makes too much is taken off.
__device__ __forceinline__ void widen(u32 (&to)[4], const u32 (&numbers)[LANE_BYTES / 4], int step) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
#if FORMAT == 8
        const u32 both = __byte_perm(numbers[step * 2 + i / 2], 0, i % 2 == 0 ? 0x4140 : 0x4342);
#if IN_BF16
        // Seven bits behind 128, less 256 if the eighth says that the number is negative.
        to[i] = minus((both & 0x007f007f) | 0x43004300, (both & 0x00800080) | 0x43004300);
#else
        to[i] = minus((both ^ 0x00800080) | 0x64006400, 0x64806480); // 1024 + 128
#endif
#else
        const u32 both = (numbers[step] >> i * 4) & 0x000f000f;
#if IN_BF16
        to[i] = minus(both | 0x43004300, FORMAT == 2 ? 0x43084308 : 0x43004300); // 128, and 8
#else
        to[i] = minus(both | 0x64006400, FORMAT == 2 ? 0x64086408 : 0x64006400); // 1024, and 8
#endif
#endif
    }
}

// Two of fp16.
__device__ __forceinline__ void toFloats(float (&to)[2], u32 halves) {
    asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
        : "=f"(to[0]), "=f"(to[1]) : "r"(halves));
}

// Two bytes, as floating point.
__device__ __forceinline__ void bytesToFloats(float (&to)[2], u32 bytes, int first) {
    to[0] = __uint_as_float(__byte_perm(bytes, 0x4b000000, 0x7440 + first)) - 8388608.0f;
    to[1] = __uint_as_float(__byte_perm(bytes, 0x4b000000, 0x7440 + first + 1)) - 8388608.0f;
}

// What a lane reads of a block, from the begin of what it lies in on.
struct Places {
    u32 a[K_BLOCK / 32]; // of two steps
    u32 numbers;
    u32 scales; // of its two columns
};

__device__ __forceinline__ Places placesOf(int group) {
    const int lane = threadIdx.x % 32, matrix = lane / 8, r = lane % 8;
    Places at;
#pragma unroll
    for (int k = 0; k < K_BLOCK / 32; k++) at.a[k] = r * 128 + ((k * 4 + matrix) ^ r) * 16;
    at.numbers = group * GROUP_BYTES + lane * 16;
    at.scales = group * 8 + lane / 4;
    return at;
}

// What a lane reads of a block.
struct Numbers {
    u32 numbers[LANE_BYTES / 4];
    u32 scales[2]; // of 32 columns of K each
    u32 ofScales[2]; // and of offsets
};

__device__ __forceinline__ void readBlock(Numbers& to, u32 unit, int blockOfUnit, const Places& at) {
    read<LANE_BYTES>(to.numbers, unit + blockOfUnit * NUMBER_BYTES + at.numbers);
    const u32 scales = unit + UNIT_BLOCKS * NUMBER_BYTES;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        u32 bits[1];
        read<4>(bits, scales + blockOfUnit * SCALE_BYTES + (half * (COLS / 2) + at.scales) * 4);
        to.scales[half] = bits[0];
    }
    if (SCALED_SCALES) read<8>(to.ofScales, scales + UNIT_BLOCKS * SCALE_BYTES + at.scales * 8);
}

// Adds a block, whose rows of A begin at `a`.
__device__ __forceinline__ void multiplyBlock(float (&sums)[ROW_GROUPS][4], u32 a, const Numbers& block, const Places& at) {
    float ofScales[2], ofOffsets[2];
    if (SCALED_SCALES) {
        toFloats(ofScales, block.ofScales[0]);
        toFloats(ofOffsets, block.ofScales[1]);
    }
#pragma unroll
    for (int half = 0; half < 2; half++) {
        float scales[2], offsets[2];
        if (SCALED_SCALES) {
            bytesToFloats(scales, block.scales[half], 0);
            bytesToFloats(offsets, block.scales[half], 2);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                scales[i] *= ofScales[i];
                offsets[i] *= ofOffsets[i];
            }
        } else {
            toFloats(scales, block.scales[half]);
        }
        u32 b[2][4];
        widen(b[0], block.numbers, half * 2);
        widen(b[1], block.numbers, half * 2 + 1);
#pragma unroll
        for (int g = 0; g < ROW_GROUPS; g++) {
            u32 ofA[4];
            ldmatrix(ofA, a + at.a[half] + g * 8 * 128);
            float products[4] = {};
            multiplyAdd(products, b[0], ofA[0], ofA[1]);
            multiplyAdd(products, b[1], ofA[2], ofA[3]);
#pragma unroll
            for (int i = 0; i < 4; i++) sums[g][i] = __fmaf_rn(scales[i / 2], products[i], sums[g][i]);
            if (SCALED_SCALES) {
                const u32 one = IN_BF16 ? 0x3f803f80 : 0x3c003c00;
                const u32 ones[4] = {one, one, one, one};
                float ofRows[4] = {};
                multiplyAdd(ofRows, ones, ofA[0], ofA[1]);
                multiplyAdd(ofRows, ones, ofA[2], ofA[3]);
#pragma unroll
                for (int i = 0; i < 4; i++) sums[g][i] = __fmaf_rn(-offsets[i / 2], ofRows[i], sums[g][i]);
            }
        }
    }
}

// A tile; leaves the ring behind its last stage.
__device__ __forceinline__ void multiply(
    const Schedule& s, float (&sums)[ROW_GROUPS][4], int part, u32 stages, Barriers barriers, Ring& ring, const Places& at) {
#pragma unroll
    for (int g = 0; g < ROW_GROUPS; g++) {
#pragma unroll
        for (int i = 0; i < 4; i++) sums[g][i] = 0.0f;
    }
    for (int first = 0; first < s.kBlocks; first += BLOCKS) {
        awaitPhase(barriers.full(ring.stage), ring.parity);
        const u32 stage = stages + ring.stage * STAGE_BYTES;
        const int blocks = min(BLOCKS, s.kBlocks - first);
#pragma unroll 2
        for (int block = part; block < blocks; block += PARTS) {
            Numbers numbers;
            readBlock(numbers, stage + UNITS_AT + block / UNIT_BLOCKS * UNIT_BYTES, block % UNIT_BLOCKS, at);
            multiplyBlock(sums, stage + block * A_STEP, numbers, at);
        }
        giveBack(barriers, ring.stage);
        ring.advance();
    }
}

__device__ __forceinline__ void syncMultiplying() { asm volatile("bar.sync 1, %0;" ::"n"(32 * WARPS) : "memory"); }

// Adds the sums of the other parts to those of the first, by way of shared memory.
__device__ __forceinline__ void addParts(float (&sums)[ROW_GROUPS][4], int group, int part, u32 room) {
    const u32 own = room + (group * 32 + threadIdx.x % 32) * 16;
    constexpr int EACH = ROWS * COLS * 4;
#pragma unroll
    for (int g = 0; g < ROW_GROUPS; g++) {
        if (part == 0) break;
        asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};"
                     ::"r"(own + (part - 1) * EACH + g * GROUPS * 512), "f"(sums[g][0]), "f"(sums[g][1]), "f"(sums[g][2]),
                     "f"(sums[g][3]) : "memory");
    }
    syncMultiplying();
    for (int other = 1; other < PARTS && part == 0; other++) {
#pragma unroll
        for (int g = 0; g < ROW_GROUPS; g++) {
            u32 added[4];
            asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                         : "=r"(added[0]), "=r"(added[1]), "=r"(added[2]), "=r"(added[3])
                         : "r"(own + (other - 1) * EACH + g * GROUPS * 512) : "memory");
#pragma unroll
            for (int i = 0; i < 4; i++) sums[g][i] += __uint_as_float(added[i]);
        }
    }
    // The next tile's sums come to the same place.
    syncMultiplying();
}

extern "C" __global__ void __launch_bounds__(THREADS, ROWS == 8 && !EIGHT_BITS ? 2 : 1) gated_gemm(
    const __grid_constant__ Schedule s, const TensorMap* aMaps, const u8* b, const __grid_constant__ TensorMap, void* c,
    u64 cPitch, int n, int) {
    extern __shared__ __align__(1024) u8 shared[];
    const u32 stages = sharedAddress(shared);
    const Barriers barriers = {stages + BARRIERS_AT};
    setUp(barriers, WARPS);
    const int warp = warpNumber();
    if (warp < WARPS) {
        const int group = warp % GROUPS, part = warp / GROUPS;
        const Places at = placesOf(group);
        Ring ring;
        for (int t = firstTile(); t < s.tileCount; t += tileStride()) {
            if (threadIdx.x == 0) tileBegins(s, t);
            float sums[ROW_GROUPS][4];
            multiply(s, sums, part, stages, barriers, ring, at);
            addParts(sums, group, part, stages + PARTS_AT);
            if (part == 0) store(sums, tileAt(s, t), 0, group * 16, c, cPitch, n);
            if (s.busy != nullptr) syncMultiplying();
            if (threadIdx.x == 0) tileEnds(s, t);
        }
    } else if (warp == WARPS) {
        bringB(s, b, n, stages, barriers);
    } else if (warp == WARPS + 1) {
        bringA(s, aMaps, stages, barriers);
    } else if (blockIdx.x == 0) {
        watchArrivals(s);
    }
}
