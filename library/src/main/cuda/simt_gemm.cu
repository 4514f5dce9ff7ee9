// The gated product without tensor cores, for what they cannot multiply: fp32, A and B of different types, and rows that
// do not start at multiples of 16 bytes. sm_80 and later.
// C[row, col] = sum over k = 0, 1, 2, ... of A[row, k] x B[k, col], by one fused multiply-add in fp32 each, as the engines
// on the CPU do: an element's bits depend on its row of A and its column of B alone.
// Launch: 256 threads, SHARED_BYTES of dynamic shared memory, any grid. Block b takes tiles b, b + gridDim.x, ...
// Tiles are 128 columns wide, at any column. Elements are aligned to their own size, pitches are multiples of it.
#include "schedule.cuh"

constexpr int TILE = 128;     // rows and columns of a tile
constexpr int BLOCK_K = 16;   // columns of A that are loaded at once
constexpr int GATE_K = 64;    // the unit in which gates are placed along k
constexpr int PITCH = TILE + 4; // keeps 16 bytes' alignment, and stores along k off each other's banks
constexpr int SHARED_BYTES = 2 * 2 * BLOCK_K * PITCH * 4;
constexpr int LOADS = TILE * BLOCK_K / 256; // elements of one operand that a thread loads
static_assert(SHARED_BYTES == 33792, "the host asks for this much");

// Types as the host numbers them.
constexpr int FP32 = 0, FP16 = 1;

struct Types {
    int a, b, c;
    int bTransposed; // 0: B is [K, N], 1: [N, K]; row-major both
};

__device__ __forceinline__ float element(const u8* at, int type) {
    if (type == FP32) return *(const float*)at;
    const u16 bits = *(const u16*)at;
    float wide;
    if (type == FP16) {
        asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(bits));
    } else {
        wide = __uint_as_float((u32)bits << 16);
    }
    return wide;
}

__device__ __forceinline__ u16 narrow(float wide, int type) {
    u32 pair;
    if (type == FP16) {
        asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(wide));
    } else {
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(0.0f), "f"(wide));
    }
    return (u16)pair;
}

// 128 rows of 16 elements, for an operand whose rows run along k: A, and B given as [N, K].
__device__ __forceinline__ void loadAlongK(
    float (&to)[LOADS], const u8* rows, u64 pitch, int type, int count, int kFirst, int k) {
    const int along = kFirst + threadIdx.x % BLOCK_K;
    const u8* at = rows + (u64)along * (type == FP32 ? 4 : 2);
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        const int row = threadIdx.x / BLOCK_K + i * (256 / BLOCK_K);
        to[i] = row < count && along < k ? element(at + row * pitch, type) : 0.0f;
    }
}

__device__ __forceinline__ void storeAlongK(float* shared, const float (&from)[LOADS]) {
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        shared[threadIdx.x % BLOCK_K * PITCH + threadIdx.x / BLOCK_K + i * (256 / BLOCK_K)] = from[i];
    }
}

// 16 rows of 128 elements, for B given as [K, N].
__device__ __forceinline__ void loadAcrossK(
    float (&to)[LOADS], const u8* columns, u64 pitch, int type, int count, int kFirst, int k) {
    const int column = threadIdx.x % TILE;
    const u8* at = columns + column * (type == FP32 ? 4 : 2);
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        const int row = kFirst + threadIdx.x / TILE + i * (256 / TILE);
        to[i] = column < count && row < k ? element(at + row * pitch, type) : 0.0f;
    }
}

__device__ __forceinline__ void storeAcrossK(float* shared, const float (&from)[LOADS]) {
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        shared[(threadIdx.x / TILE + i * (256 / TILE)) * PITCH + threadIdx.x % TILE] = from[i];
    }
}

// A thread's 8 rows, and its 8 columns, of a tile: four and, half a tile further, four more.
__device__ __forceinline__ int spread(int thread, int i) { return thread * 4 + i % 4 + i / 4 * (TILE / 2); }

__device__ __forceinline__ void loadEight(float (&to)[8], const float* row, int thread) {
    const float4 low = *(const float4*)(row + thread * 4);
    const float4 high = *(const float4*)(row + TILE / 2 + thread * 4);
    to[0] = low.x, to[1] = low.y, to[2] = low.z, to[3] = low.w;
    to[4] = high.x, to[5] = high.y, to[6] = high.z, to[7] = high.w;
}

__device__ __forceinline__ void multiplyBlock(float (&sum)[8][8], const float* a, const float* b, int depth) {
    const int down = threadIdx.x / 16, across = threadIdx.x % 16;
#pragma unroll
    for (int kk = 0; kk < BLOCK_K; kk++) {
        // A zero that is added to a sum of minus zero would change its sign.
        if (kk >= depth) break;
        float x[8], y[8];
        loadEight(x, a + kk * PITCH, down);
        loadEight(y, b + kk * PITCH, across);
#pragma unroll
        for (int i = 0; i < 8; i++) {
#pragma unroll
            for (int j = 0; j < 8; j++) {
                sum[i][j] = __fmaf_rn(x[i], y[j], sum[i][j]);
            }
        }
    }
}

__device__ __forceinline__ void store(const float (&sum)[8][8], const Tile& tile, void* c, u64 pitch, int n, int type) {
    const int down = threadIdx.x / 16, across = threadIdx.x % 16;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int row = spread(down, i);
        if (row >= tile.rows) continue;
        const u64 first = (tile.row + row) * pitch;
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int column = tile.col + spread(across, j);
            if (column >= n) continue;
            if (type == FP32) {
                ((float*)c)[first + column] = sum[i][j];
            } else {
                ((u16*)c)[first + column] = narrow(sum[i][j], type);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(256, 2)
        gated_gemm(const __grid_constant__ Schedule s, const Source* sources, const __grid_constant__ Source b, void* c,
                   u64 cPitchElements, int n, int k, const __grid_constant__ Types types) {
    extern __shared__ __align__(128) float shared[];
    const int bBytes = types.b == FP32 ? 4 : 2;
    for (int t = blockIdx.x; t < s.tileCount; t += gridDim.x) {
        if (threadIdx.x == 0) tileBegins(s, t);
        const Tile tile = tileAt(s, t);
        const Source a = sources[tile.source];
        const u8* rowsOfA = (const u8*)a.data + tile.sourceRow * a.pitch;
        const u8* columnsOfB = (const u8*)b.data + tile.col * (types.bTransposed ? b.pitch : (u64)bBytes);
        const int gateEnd = tile.gate + tile.gates;
        const int columns = n - tile.col;
        int gate = tile.gate;
        float sum[8][8] = {};

        // One block is loaded into registers while the one before it is multiplied.
        const int blocks = (k + BLOCK_K - 1) / BLOCK_K;
#pragma unroll 1
        for (int block = -1; block < blocks; block++) {
            const int ahead = (block + 1) * BLOCK_K;
            float nextA[LOADS], nextB[LOADS];
            if (block + 1 < blocks) {
                if (gate < gateEnd && s.gates[gate].kBlock <= ahead / GATE_K) {
                    // The one gate. Gates come in ascending order of their K blocks.
                    for (; gate < gateEnd && s.gates[gate].kBlock <= ahead / GATE_K; gate++) {
                        if (threadIdx.x == 0) awaitGate(s, t, gate);
                    }
                    __syncthreads();
                }
                loadAlongK(nextA, rowsOfA, a.pitch, types.a, tile.rows, ahead, k);
                if (types.bTransposed) {
                    loadAlongK(nextB, columnsOfB, b.pitch, types.b, columns, ahead, k);
                } else {
                    loadAcrossK(nextB, columnsOfB, b.pitch, types.b, columns, ahead, k);
                }
            }
            if (block >= 0) {
                const float* stage = shared + (block & 1) * 2 * BLOCK_K * PITCH;
                multiplyBlock(sum, stage, stage + BLOCK_K * PITCH, k - block * BLOCK_K);
            }
            if (block + 1 < blocks) {
                // The other stage was last read a round ago, before the barrier below.
                float* stage = shared + (block + 1 & 1) * 2 * BLOCK_K * PITCH;
                storeAlongK(stage, nextA);
                if (types.bTransposed) {
                    storeAlongK(stage + BLOCK_K * PITCH, nextB);
                } else {
                    storeAcrossK(stage + BLOCK_K * PITCH, nextB);
                }
                __syncthreads();
            }
        }
        // The next tile's loads may only overwrite what every thread has multiplied.
        __syncthreads();
        store(sum, tile, c, cPitchElements, n, types.c);
        if (threadIdx.x == 0) tileEnds(s, t);
    }
}
