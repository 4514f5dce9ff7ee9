// Kernels that fill inputs and judge results: simple rather than fast, and sharing no arithmetic with what they judge.
// Pitches of A and B are bytes, as in every Source; those of fill_normal and of C are elements.
#include "schedule.cuh"

#ifndef IN_BF16
#define IN_BF16 0 // 0: A and B are fp16, 1: bf16
#endif
#ifndef OUT_FP32
#define OUT_FP32 0 // 0: C has the type of A and B, 1: fp32
#endif
#ifndef B_TRANSPOSED
#define B_TRANSPOSED 0 // 0: B is [K, N], 1: [N, K]; row-major both
#endif

// Set by the host before a check: 0, ~0, 0. 24 bytes.
struct Verdict {
    u64 mismatches;
    u64 firstIndex;   // smallest index that mismatches: row * n + col, or row * rowBytes + byte
    u32 maxRatioBits; // largest |c - ref| / bound, as the bits of a float; infinity where c is not a number
    u32 pad;
};

__device__ __forceinline__ float fromInput(u16 bits) {
#if IN_BF16
    return __uint_as_float((u32)bits << 16);
#else
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
#endif
}

__device__ __forceinline__ u16 toInput(float value) {
    u32 packed;
#if IN_BF16
    asm("cvt.rn.bf16x2.f32 %0, %1, %1;" : "=r"(packed) : "f"(value));
#else
    asm("cvt.rn.f16x2.f32 %0, %1, %1;" : "=r"(packed) : "f"(value));
#endif
    return (u16)packed;
}

__device__ __forceinline__ float output(const void* c, u64 index) {
#if OUT_FP32
    return ((const float*)c)[index];
#else
    return fromInput(((const u16*)c)[index]);
#endif
}

// Twice half a unit in the last place of the output type, so that a rounding that went the other way is no mismatch.
__device__ __forceinline__ float outputRounding(float reference) {
#if OUT_FP32
    return fabsf(reference) * 0x1p-23f;
#elif IN_BF16
    return fabsf(reference) * 0x1p-7f;
#else
    return fabsf(reference) * 0x1p-10f + 0x1p-24f;
#endif
}

// A bijection of 64-bit words that leaves no visible pattern between neighbours: shifts and odd multipliers.
__device__ __forceinline__ u64 mixed(u64 x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

// Element (row, col) depends on the seed and on row * cols + col alone, whatever the grid and the card: the sum of four
// uniform 16-bit numbers, less its mean 131070 and divided by its deviation 37837.2, times `scale`.
extern "C" __global__ void fill_normal(u16* data, u64 rows, u64 cols, u64 pitchElements, u64 seed, float scale) {
    const u64 stride = (u64)gridDim.x * blockDim.x;
    const u64 origin = mixed(seed + 0x9e3779b97f4a7c15ull);
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < rows * cols; i += stride) {
        const u64 bits = mixed(origin + i * 0x9e3779b97f4a7c15ull);
        const u32 low = (u32)bits, high = (u32)(bits >> 32);
        const int sum = (int)((low & 0xffff) + (low >> 16) + (high & 0xffff) + (high >> 16));
        data[i / cols * pitchElements + i % cols] = toInput((float)(sum - 131070) * (scale / 37837.2f));
    }
}

// Thread (x, y) of 16 x 16 judges rows y + 16 i and columns x + 16 j of the block's 64 x 64 elements.
// Launch: 256 threads, grid (columns / 64, rows / 64), both rounded up; larger products stride over the grid.
constexpr int SIDE = 64;
constexpr int DEPTH = 16;

struct Panels {
    float a[DEPTH][SIDE + 1]; // one more than a power of two, so that columns do not share a bank
    float b[DEPTH][SIDE + 1];
};

// What lies outside the matrices counts as zero and is not read.
__device__ __forceinline__ void loadPanels(Panels& p, const Source& a, const Source& b, int row, int col, int k0,
                                           int m, int n, int k) {
    for (int i = threadIdx.x; i < SIDE * DEPTH; i += 256) {
        const int line = i / DEPTH, depth = i % DEPTH;
        const u16* rowOfA = (const u16*)((const u8*)a.data + (row + line) * a.pitch);
        p.a[depth][line] = row + line < m && k0 + depth < k ? fromInput(rowOfA[k0 + depth]) : 0.0f;
#if B_TRANSPOSED
        const u16* rowOfB = (const u16*)((const u8*)b.data + (col + line) * b.pitch);
        p.b[depth][line] = col + line < n && k0 + depth < k ? fromInput(rowOfB[k0 + depth]) : 0.0f;
#else
        const int across = i % SIDE, down = i / SIDE;
        const u16* rowOfB = (const u16*)((const u8*)b.data + (k0 + down) * b.pitch);
        p.b[down][across] = col + across < n && k0 + down < k ? fromInput(rowOfB[col + across]) : 0.0f;
#endif
    }
}

// True where `value` is as near to the reference as it must be; raises `worst` to its distance in bounds.
__device__ __forceinline__ bool judge(float value, float reference, float bound, float& worst) {
    const float infinity = __uint_as_float(0x7f800000u);
    const float distance = fabsf(value - reference);
    if (!(distance <= bound && bound < infinity)) {
        worst = fmaxf(worst, distance > bound && bound > 0.0f ? distance / bound : infinity);
        return false;
    }
    if (distance > 0.0f) worst = fmaxf(worst, distance / bound);
    return true;
}

// Judges every element of C = A x B against the fp32 sum over ascending k: |c - ref| must be at most
// relativeBound * (sum of |a| |b|) plus the output type's rounding. Not a number is a mismatch. Results are expected to
// lie within the output type's range.
extern "C" __global__ void __launch_bounds__(256)
        check_product(Source a, Source b, const void* c, u64 cPitchElements, int m, int n, int k,
                      float relativeBound, Verdict* verdict) {
    __shared__ Panels p;
    const int x = threadIdx.x & 15, y = threadIdx.x >> 4;
    float worst = 0.0f;
    for (int row = blockIdx.y * SIDE; row < m; row += gridDim.y * SIDE) {
        for (int col = blockIdx.x * SIDE; col < n; col += gridDim.x * SIDE) {
            float sum[4][4] = {}, magnitude[4][4] = {};
            for (int k0 = 0; k0 < k; k0 += DEPTH) {
                __syncthreads();
                loadPanels(p, a, b, row, col, k0, m, n, k);
                __syncthreads();
#pragma unroll
                for (int depth = 0; depth < DEPTH; depth++) {
#pragma unroll
                    for (int i = 0; i < 4; i++) {
#pragma unroll
                        for (int j = 0; j < 4; j++) {
                            const float left = p.a[depth][y + 16 * i], right = p.b[depth][x + 16 * j];
                            sum[i][j] = fmaf(left, right, sum[i][j]);
                            magnitude[i][j] = fmaf(fabsf(left), fabsf(right), magnitude[i][j]);
                        }
                    }
                }
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const int r = row + y + 16 * i, q = col + x + 16 * j;
                    if (r >= m || q >= n) continue;
                    const float bound = relativeBound * magnitude[i][j] + outputRounding(sum[i][j]);
                    if (judge(output(c, r * cPitchElements + q), sum[i][j], bound, worst)) continue;
                    atomicAdd(&verdict->mismatches, 1ull);
                    atomicMin(&verdict->firstIndex, (u64)r * n + q);
                }
            }
        }
    }
    // Non-negative floats are ordered as their bits are.
    if (worst > 0.0f) atomicMax(&verdict->maxRatioBits, __float_as_uint(worst));
}

struct __align__(16) Piece {
    u64 low, high;
};

// Counts the bytes that differ between two matrices of bytes; pitches are bytes. Any grid.
extern "C" __global__ void compare_bytes(const u8* x, const u8* y, u64 rows, u64 rowBytes, u64 xPitch, u64 yPitch,
                                         Verdict* verdict) {
    const u64 pieces = (rowBytes + 15) / 16;
    const u64 stride = (u64)gridDim.x * blockDim.x;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < rows * pieces; i += stride) {
        const u64 row = i / pieces, first = i % pieces * 16;
        const u8* left = x + row * xPitch + first;
        const u8* right = y + row * yPitch + first;
        if (first + 16 <= rowBytes && (((u64)left | (u64)right) & 15) == 0) {
            const Piece l = *(const Piece*)left, r = *(const Piece*)right;
            if (l.low == r.low && l.high == r.high) continue;
        }
        const int bytes = rowBytes - first < 16 ? (int)(rowBytes - first) : 16;
        for (int byte = 0; byte < bytes; byte++) {
            if (left[byte] == right[byte]) continue;
            atomicAdd(&verdict->mismatches, 1ull);
            atomicMin(&verdict->firstIndex, row * rowBytes + first + byte);
        }
    }
}

// Holds its blocks' places on the card until `flag` reaches `value`: the outcome becomes 1, or 2 if any block waited
// longer than the deadline. Shows whether copies and flags go past a grid that fills the card.
extern "C" __global__ void spin_until(const u32* flag, u32 value, u64 deadlineNs, u32* outcome) {
    if (threadIdx.x == 0) {
        const u64 start = nowNs();
        u32 result = 0;
        while (result == 0) {
            if (reached(flagAcquire(flag), value, 0x7fffffff)) {
                result = 1;
            } else if (nowNs() - start > deadlineNs) {
                result = 2;
            } else {
                __nanosleep(20);
            }
        }
        atomicMax(outcome, result);
    }
    __syncthreads();
}

// Keeps its stream busy for `ns`, at most ten seconds.
extern "C" __global__ void hold(u64 ns) {
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    const u64 longest = 10000000000ull;
    const u64 start = nowNs();
    while (nowNs() - start < (ns < longest ? ns : longest)) __nanosleep(1000);
}
