// The gated product for cards without Hopper's instructions: sm_80 and later.
// C[row, col] = sum over k of A[row, k] x B[k, col], in fp32, k ascending in steps of 16: an element's bits depend on
// its row of A and its column of B alone, never on the tile it lies in or on when its rows arrived.
// Launch: 256 threads, SHARED_BYTES of dynamic shared memory, any grid. Block b takes tiles b, b + gridDim.x, ...
// Tiles are 128 columns wide, at columns that are multiples of 8. Sources are 16-byte aligned, pitches multiples of 16.
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

constexpr int TILE_ROWS = 128;
constexpr int TILE_COLUMNS = 128;
constexpr int BLOCK_K = 64;
constexpr int STAGES = 3;
constexpr int OPERAND_BYTES = TILE_ROWS * BLOCK_K * 2;
constexpr int STAGE_BYTES = 2 * OPERAND_BYTES;
constexpr int SHARED_BYTES = STAGES * STAGE_BYTES; // 96 KiB: fits the 99 KiB of consumer cards
constexpr int NEVER = 0x7fffffff;
static_assert(TILE_ROWS == TILE_COLUMNS && SHARED_BYTES == 98304, "the host asks for this much");

#if OUT_FP32
typedef float Out;
struct __align__(8) OutPair {
    float low, high;
};
#else
typedef u16 Out;
typedef u32 OutPair;
#endif

// Shared memory holds each operand in rows of 8 (or 16) pieces of 16 bytes. Piece p of row r lies at p ^ (r & 7), so
// that the eight rows of one ldmatrix matrix fall into eight different groups of banks.
__device__ __forceinline__ u32 swizzled(int row, int piece, int rowBytes) {
    return row * rowBytes + ((piece ^ (row & 7)) << 4);
}

__device__ __forceinline__ u32 sharedAddress(const void* generic) {
    u64 address;
    asm("cvta.to.shared.u64 %0, %1;" : "=l"(address) : "l"(generic));
    return (u32)address;
}

// Copies a piece of 16 bytes: the first `bytes` are read, the rest become zero. With 0 nothing is read at all.
__device__ __forceinline__ void copyPiece(u32 shared, const u8* global, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes) : "memory");
}

__device__ __forceinline__ void endCopyGroup() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until all but the newest STAGES - 2 groups of this thread's copies have landed.
__device__ __forceinline__ void awaitOldestCopies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
}

__device__ __forceinline__ void ldmatrix(u32 (&r)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

__device__ __forceinline__ void ldmatrixTransposed(u32 (&r)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(address)
                 : "memory");
}

#if IN_BF16
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32"
#define PACK "cvt.rn.bf16x2.f32"
#else
#define MMA "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
#define PACK "cvt.rn.f16x2.f32"
#endif

__device__ __forceinline__ void multiplyAdd(float (&sum)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile(MMA " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

__device__ __forceinline__ OutPair outPair(float low, float high) {
#if OUT_FP32
    return {low, high};
#else
    u32 packed;
    asm(PACK " %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
#endif
}

// Bytes to read of a piece of which `elements` elements are left.
__device__ __forceinline__ int pieceBytes(int elements) {
    return elements <= 0 ? 0 : elements >= 8 ? 16 : 2 * elements;
}

// Loads 128 rows of 64 elements, for an operand whose rows run along k: A, and B given as [N, K]. `first` is the first
// row's piece at this K block; rows from `rows` on and elements from `kLeft` on become zero.
__device__ __forceinline__ void loadAlongK(u32 shared, const u8* first, u64 pitch, int rows, int kLeft) {
    const int row = threadIdx.x >> 3, piece = threadIdx.x & 7;
    const int bytes = pieceBytes(kLeft - 8 * piece);
    const u8* from = first + row * pitch + 16 * piece;
    const u32 to = shared + swizzled(row, piece, 128);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        copyPiece(to + i * 32 * 128, from + i * 32 * pitch, row + 32 * i < rows ? bytes : 0);
    }
}

// Loads 64 rows of 128 elements, for B given as [K, N]. Rows from `kLeft` on, elements from `columns` on become zero.
__device__ __forceinline__ void loadAcrossK(u32 shared, const u8* first, u64 pitch, int columns, int kLeft) {
    const int row = threadIdx.x >> 4, piece = threadIdx.x & 15;
    const int bytes = pieceBytes(columns - 8 * piece);
    const u8* from = first + row * pitch + 16 * piece;
    const u32 to = shared + swizzled(row, piece, 256);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        copyPiece(to + i * 16 * 256, from + i * 16 * pitch, row + 16 * i < kLeft ? bytes : 0);
    }
}

// What one warp multiplies at once: 64 rows of A by 32 columns of B, 16 deep.
struct Fragments {
    u32 a[4][4];
    u32 b[2][4];
};

__device__ __forceinline__ int warpRow() { return (threadIdx.x >> 5 & 1) * 64; }

__device__ __forceinline__ int warpColumn() { return (threadIdx.x >> 6) * 32; }

__device__ __forceinline__ void loadFragments(Fragments& f, u32 stage, int step) {
    const int lane = threadIdx.x & 31;
    const u32 stageB = stage + OPERAND_BYTES;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        ldmatrix(f.a[i], stage + swizzled(warpRow() + 16 * i + (lane & 15), 2 * step + (lane >> 4), 128));
    }
#pragma unroll
    for (int j = 0; j < 2; j++) {
#if B_TRANSPOSED
        const int row = warpColumn() + 16 * j + (lane & 7) + (lane >> 4) * 8;
        ldmatrix(f.b[j], stageB + swizzled(row, 2 * step + (lane >> 3 & 1), 128));
#else
        const int piece = warpColumn() / 8 + 2 * j + (lane >> 4);
        ldmatrixTransposed(f.b[j], stageB + swizzled(16 * step + (lane & 15), piece, 256));
#endif
    }
}

__device__ __forceinline__ void multiplyBlock(float (&sum)[4][4][4], u32 stage) {
#pragma unroll
    for (int step = 0; step < BLOCK_K / 16; step++) {
        Fragments f;
        loadFragments(f, stage, step);
#pragma unroll
        for (int i = 0; i < 4; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                multiplyAdd(sum[i][j], f.a[i], f.b[j >> 1][2 * (j & 1)], f.b[j >> 1][2 * (j & 1) + 1]);
            }
        }
    }
}

__device__ __forceinline__ void store(const float (&sum)[4][4][4], const Tile& tile, Out* c, u64 pitch, int n) {
    const int lane = threadIdx.x & 31;
    const int column = tile.col + warpColumn() + 2 * (lane & 3);
    Out* corner = c + tile.row * pitch + column;
    // Only the element's own alignment is promised; two at once need twice that, in every row.
    const bool paired = (((u64)corner | pitch * sizeof(Out)) & (sizeof(OutPair) - 1)) == 0;
#pragma unroll
    for (int half = 0; half < 8; half++) {
        const int row = warpRow() + 8 * half + (lane >> 2);
        if (row >= tile.rows) continue;
        Out* to = corner + row * pitch;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int left = n - column - 8 * j;
            const float(&quad)[4] = sum[half >> 1][j];
            const OutPair pair = outPair(quad[2 * (half & 1)], quad[2 * (half & 1) + 1]);
            if (paired && left >= 2) {
                *(OutPair*)(to + 8 * j) = pair;
                continue;
            }
#if OUT_FP32
            if (left >= 1) to[8 * j] = pair.low;
            if (left >= 2) to[8 * j + 1] = pair.high;
#else
            if (left >= 1) to[8 * j] = (u16)pair;
            if (left >= 2) to[8 * j + 1] = (u16)(pair >> 16);
#endif
        }
    }
}

#if SUMS
// What a tile starts from, in the places of `store`; nothing is read beyond its rows and columns.
__device__ __forceinline__ void loadSums(float (&sum)[4][4][4], const Tile& tile, const Source& sums, int n) {
    const int lane = threadIdx.x & 31;
    const int column = tile.col + warpColumn() + 2 * (lane & 3);
#pragma unroll
    for (int half = 0; half < 8; half++) {
        const int row = warpRow() + 8 * half + (lane >> 2);
        if (row >= tile.rows) continue;
        const float* from = (const float*)((const u8*)sums.data + (tile.row + row) * sums.pitch) + column;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int left = n - column - 8 * j;
            float(&quad)[4] = sum[half >> 1][j];
            if (left >= 1) quad[2 * (half & 1)] = from[8 * j];
            if (left >= 2) quad[2 * (half & 1) + 1] = from[8 * j + 1];
        }
    }
}
#endif

extern "C" __global__ void __launch_bounds__(256, 2)
        gated_gemm(const __grid_constant__ Schedule s, const Source* sources, const __grid_constant__ Source b, void* c,
                   u64 cPitchElements, int n, int k
#if SUMS
                   , const __grid_constant__ Source sums, const Source* bs, const Part* parts
#endif
) {
    extern __shared__ __align__(128) u8 shared[];
    const u32 stages = sharedAddress(shared);
    for (int t = blockIdx.x; t < s.tileCount; t += gridDim.x) {
        const Tile tile = s.tiles[t];
        Source a = sources[tile.source];
        Source ofB = b;
        int partFirst = 0, partK = k;
#if SUMS
        int part = 0;
        if (parts != nullptr) {
            ofB = bs[0];
            partK = parts[0].k;
        }
#endif
        const u8* rowsOfA = (const u8*)a.data + tile.sourceRow * a.pitch;
        const u8* columnsOfB = (const u8*)ofB.data + tile.col * (B_TRANSPOSED ? ofB.pitch : 2);
        const int gateEnd = tile.gate + tile.gates;
        int gate = tile.gate;
        int due = gate < gateEnd ? s.gates[gate].kBlock : NEVER;
        float sum[4][4][4] = {};
#if SUMS
        if (s.startsFromSums) {
            // All of its gates are about the sums.
            for (; gate < gateEnd; gate++) {
                if (threadIdx.x == 0) awaitGate(s, t, s.gates + gate);
            }
            due = NEVER;
            __syncthreads();
            loadSums(sum, tile, sums, n);
        }
#endif

        // Loads run STAGES - 1 blocks ahead of the products; the first rounds only load.
        u32 filling = stages, ready = stages;
#pragma unroll 1
        for (int block = 1 - STAGES; block < s.kBlocks; block++) {
            if (block >= 0) {
                awaitOldestCopies();
                __syncthreads();
            }
            const int ahead = block + STAGES - 1;
            if (ahead < s.kBlocks) {
                if (due <= ahead) {
                    // The one gate. Gates come in ascending order of their K blocks.
                    for (; gate < gateEnd && s.gates[gate].kBlock <= ahead; gate++) {
                        if (threadIdx.x == 0) awaitGate(s, t, s.gates + gate);
                    }
                    due = gate < gateEnd ? s.gates[gate].kBlock : NEVER;
                    __syncthreads();
                }
#if SUMS
                if (parts != nullptr && ahead == parts[part].endBlock) {
                    partFirst = ahead;
                    part++;
                    partK = parts[part].k;
                    a = sources[tile.source + part];
                    ofB = bs[part];
                    rowsOfA = (const u8*)a.data + tile.sourceRow * a.pitch;
                    columnsOfB = (const u8*)ofB.data + tile.col * (B_TRANSPOSED ? ofB.pitch : 2);
                }
#endif
                const u64 kFirst = (u64)(ahead - partFirst) * BLOCK_K;
                const int kLeft = partK - (int)kFirst, columns = n - tile.col;
                loadAlongK(filling, rowsOfA + 2 * kFirst, a.pitch, tile.rows, kLeft);
#if B_TRANSPOSED
                loadAlongK(filling + OPERAND_BYTES, columnsOfB + 2 * kFirst, ofB.pitch, columns, kLeft);
#else
                loadAcrossK(filling + OPERAND_BYTES, columnsOfB + kFirst * ofB.pitch, ofB.pitch, columns, kLeft);
#endif
                filling = filling == stages + SHARED_BYTES - STAGE_BYTES ? stages : filling + STAGE_BYTES;
            }
            endCopyGroup();
            if (block >= 0) {
                multiplyBlock(sum, ready);
                ready = ready == stages + SHARED_BYTES - STAGE_BYTES ? stages : ready + STAGE_BYTES;
            }
        }
        // The next tile's loads may only overwrite what every warp has multiplied.
        __syncthreads();
        store(sum, tile, (Out*)c, cPitchElements, n);
#if SUMS
        if (s.signals != nullptr && s.signals[t] >= 0) {
            __syncthreads();
            if (threadIdx.x == 0) countStored(s, s.signals[t]);
        }
#endif
    }
}
