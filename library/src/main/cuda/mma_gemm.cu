// The gated product for cards without Hopper's instructions: sm_80 and later.
// C[row, col] = sum over k of A[row, k] x B[k, col], in fp32, k ascending in steps of 16: an element's bits depend on
// its row of A and its column of B alone, never on the tile it lies in or on when its rows arrived.
// Launch: 256 threads, SHARED_BYTES of dynamic shared memory, any grid. Block b takes tiles b, b + gridDim.x, ...
// Tiles begin at columns that are multiples of 8. Sources are 16-byte aligned, pitches multiples of 16.
//
// Each of the eight warps multiplies 64 rows by a quarter of the tile's columns, 16 deep at a time, and loads what it
// multiplies next meanwhile. With fewer columns per warp, reading shared memory would take longer than multiplying.
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

#ifndef TILE_COLUMNS
#define TILE_COLUMNS 256 // of the widest tile; 128 for cards with less shared memory, which has only such tiles
#endif

constexpr int THREADS = 256;
constexpr int TILE_ROWS = 128;
constexpr int BLOCK_K = 64;
constexpr int STAGES = 3;
constexpr int A_BYTES = TILE_ROWS * BLOCK_K * 2;
constexpr int B_BYTES = TILE_COLUMNS * BLOCK_K * 2;
constexpr int STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int SHARED_BYTES = STAGES * STAGE_BYTES; // 144 KiB, or 96 KiB, which fits the 99 KiB of consumer cards
constexpr int NEVER = 0x7fffffff;

#if OUT_FP32
typedef float Out;
struct __align__(8) OutPair {
    float low, high;
};
#else
typedef u16 Out;
typedef u32 OutPair;
#endif

// Shared memory holds each operand in rows of 8 or more pieces of 16 bytes. Piece p of row r lies at p ^ (r & 7), so
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

// Loads ROWS rows of 64 elements, for an operand whose rows run along k: A, and B given as [N, K]. `first` is the first
// row's piece at this K block; rows from `rows` on and elements from `kLeft` on become zero.
template <int ROWS>
__device__ __forceinline__ void loadAlongK(u32 shared, const u8* first, u64 pitch, int rows, int kLeft) {
    const int row = threadIdx.x >> 3, piece = threadIdx.x & 7;
    const int bytes = pieceBytes(kLeft - 8 * piece);
    const u8* from = first + row * pitch + 16 * piece;
    const u32 to = shared + swizzled(row, piece, 128);
#pragma unroll
    for (int i = 0; i < ROWS / 32; i++) {
        copyPiece(to + i * 32 * 128, from + i * 32 * pitch, row + 32 * i < rows ? bytes : 0);
    }
}

// Loads 64 rows of WIDTH elements, for B given as [K, N]. Rows from `kLeft` on, elements from `columns` on become zero.
template <int WIDTH>
__device__ __forceinline__ void loadAcrossK(u32 shared, const u8* first, u64 pitch, int columns, int kLeft) {
    constexpr int PIECES = TILE_COLUMNS / 8, ROWS = THREADS / PIECES;
    const int row = threadIdx.x / PIECES, piece = threadIdx.x % PIECES;
    if (piece >= WIDTH / 8) return;
    const int bytes = pieceBytes(columns - 8 * piece);
    const u8* from = first + row * pitch + 16 * piece;
#pragma unroll
    for (int i = 0; i < BLOCK_K / ROWS; i++) {
        const int r = row + i * ROWS;
        copyPiece(shared + swizzled(r, piece, TILE_COLUMNS * 2), from + i * ROWS * pitch, r < kLeft ? bytes : 0);
    }
}

// What one warp multiplies at once: 64 rows of A by COLUMNS columns of B, 16 deep.
template <int COLUMNS>
struct Fragments {
    u32 a[4][4];
    u32 b[COLUMNS / 16][4];
};

template <int COLUMNS>
using Sums = float[4][COLUMNS / 8][4];

__device__ __forceinline__ int warpRow() { return (threadIdx.x >> 5 & 1) * 64; }

__device__ __forceinline__ int warpColumn(int columns) { return (threadIdx.x >> 6) * columns; }

template <int COLUMNS>
__device__ __forceinline__ void loadFragments(Fragments<COLUMNS>& f, u32 stage, int step) {
    const int lane = threadIdx.x & 31;
    const u32 stageB = stage + A_BYTES;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        ldmatrix(f.a[i], stage + swizzled(warpRow() + 16 * i + (lane & 15), 2 * step + (lane >> 4), 128));
    }
#pragma unroll
    for (int j = 0; j < COLUMNS / 16; j++) {
#if B_TRANSPOSED
        const int row = warpColumn(COLUMNS) + 16 * j + (lane & 7) + (lane >> 4) * 8;
        ldmatrix(f.b[j], stageB + swizzled(row, 2 * step + (lane >> 3 & 1), 128));
#else
        const int piece = warpColumn(COLUMNS) / 8 + 2 * j + (lane >> 4);
        ldmatrixTransposed(f.b[j], stageB + swizzled(16 * step + (lane & 15), piece, TILE_COLUMNS * 2));
#endif
    }
}

template <int COLUMNS>
__device__ __forceinline__ void multiplyStep(Sums<COLUMNS>& sum, const Fragments<COLUMNS>& f) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; j++) {
            multiplyAdd(sum[i][j], f.a[i], f.b[j >> 1][2 * (j & 1)], f.b[j >> 1][2 * (j & 1) + 1]);
        }
    }
}

template <int COLUMNS>
__device__ __forceinline__ void store(const Sums<COLUMNS>& sum, const Tile& tile, Out* c, u64 pitch, int n) {
    const int lane = threadIdx.x & 31;
    const int column = tile.col + warpColumn(COLUMNS) + 2 * (lane & 3);
    Out* corner = c + tile.row * pitch + column;
    // Only the element's own alignment is promised; two at once need twice that, in every row.
    const bool paired = (((u64)corner | pitch * sizeof(Out)) & (sizeof(OutPair) - 1)) == 0;
#pragma unroll
    for (int half = 0; half < 8; half++) {
        const int row = warpRow() + 8 * half + (lane >> 2);
        if (row >= tile.rows) continue;
        Out* to = corner + row * pitch;
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; j++) {
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
template <int COLUMNS>
__device__ __forceinline__ void loadSums(Sums<COLUMNS>& sum, const Tile& tile, const Source& sums, int n) {
    const int lane = threadIdx.x & 31;
    const int column = tile.col + warpColumn(COLUMNS) + 2 * (lane & 3);
#pragma unroll
    for (int half = 0; half < 8; half++) {
        const int row = warpRow() + 8 * half + (lane >> 2);
        if (row >= tile.rows) continue;
        const float* from = (const float*)((const u8*)sums.data + (tile.row + row) * sums.pitch) + column;
#pragma unroll
        for (int j = 0; j < COLUMNS / 8; j++) {
            const int left = n - column - 8 * j;
            float(&quad)[4] = sum[half >> 1][j];
            if (left >= 1) quad[2 * (half & 1)] = from[8 * j];
            if (left >= 2) quad[2 * (half & 1) + 1] = from[8 * j + 1];
        }
    }
}
#endif

// What all tiles have in common.
struct Problem {
    const Source* sources; // of A
    Source b;
    void* c;
    u64 cPitch; // in elements
    int n, k;
    u32 stages;
#if SUMS
    Source sums;
    const Source* bs; // B by part of K, where there are several
    const Part* parts;
#endif
};

template <int WIDTH>
__device__ __forceinline__ void multiply(const Schedule& s, int t, const Tile& tile, const Problem& p) {
    constexpr int COLUMNS = WIDTH / 4; // of a warp
    const u32 last = p.stages + SHARED_BYTES - STAGE_BYTES;
    Source a = p.sources[tile.source];
    Source b = p.b;
    int partFirst = 0, partK = p.k;
#if SUMS
    int part = 0;
    if (p.parts != nullptr) {
        b = p.bs[0];
        partK = p.parts[0].k;
    }
#endif
    const u8* rowsOfA = (const u8*)a.data + tile.sourceRow * a.pitch;
    const u8* columnsOfB = (const u8*)b.data + tile.col * (B_TRANSPOSED ? b.pitch : 2);
    const int gateEnd = tile.gate + tile.gates;
    int gate = tile.gate;
    int due = gate < gateEnd ? s.gates[gate].kBlock : NEVER;
    Sums<COLUMNS> sum = {};
#if SUMS
    if (s.startsFromSums) {
        // All of its gates are about the sums.
        for (; gate < gateEnd; gate++) {
            if (threadIdx.x == 0) awaitGate(s, t, gate);
        }
        due = NEVER;
        __syncthreads();
        loadSums<COLUMNS>(sum, tile, p.sums, p.n);
    }
#endif
    // What must have happened before a K block is loaded. Apart from the copies: a branch among them would keep the
    // compiler from mixing them with the products.
    auto prepare = [&](int block) {
        if (due <= block) {
            // The one gate. Gates come in ascending order of their K blocks.
            for (; gate < gateEnd && s.gates[gate].kBlock <= block; gate++) {
                if (threadIdx.x == 0) awaitGate(s, t, gate);
            }
            due = gate < gateEnd ? s.gates[gate].kBlock : NEVER;
            __syncthreads();
        }
#if SUMS
        if (p.parts != nullptr && block < s.kBlocks && block == p.parts[part].endBlock) {
            partFirst = block;
            part++;
            partK = p.parts[part].k;
            a = p.sources[tile.source + part];
            b = p.bs[part];
            rowsOfA = (const u8*)a.data + tile.sourceRow * a.pitch;
            columnsOfB = (const u8*)b.data + tile.col * (B_TRANSPOSED ? b.pitch : 2);
        }
#endif
    };
    u32 filling = p.stages, ready = p.stages;
    // Starts the copies of a K block into the next stage, if there is such a block. Ends a group of copies in any case.
    auto load = [&](int block) {
        if (block < s.kBlocks) {
            const u64 kFirst = (u64)(block - partFirst) * BLOCK_K;
            const int kLeft = partK - (int)kFirst, columns = p.n - tile.col;
            loadAlongK<TILE_ROWS>(filling, rowsOfA + 2 * kFirst, a.pitch, tile.rows, kLeft);
#if B_TRANSPOSED
            loadAlongK<WIDTH>(filling + A_BYTES, columnsOfB + 2 * kFirst, b.pitch, columns, kLeft);
#else
            loadAcrossK<WIDTH>(filling + A_BYTES, columnsOfB + kFirst * b.pitch, b.pitch, columns, kLeft);
#endif
            filling = filling == last ? p.stages : filling + STAGE_BYTES;
        }
        endCopyGroup();
    };
#pragma unroll
    for (int block = 0; block < STAGES - 1; block++) {
        prepare(block);
        load(block);
    }
    awaitOldestCopies();
    __syncthreads();
    // Two sets: one is multiplied while the other is loaded.
    Fragments<COLUMNS> f[2];
    loadFragments(f[0], ready, 0);
#pragma unroll 1
    for (int block = 0; block < s.kBlocks; block++) {
        prepare(block + STAGES - 1);
#pragma unroll
        for (int step = 0; step < BLOCK_K / 16; step++) {
            if (step < BLOCK_K / 16 - 1) {
                loadFragments(f[step + 1 & 1], ready, step + 1);
            } else {
                // The next block has come, and no warp needs the stage of this one any more.
                awaitOldestCopies();
                __syncthreads();
                ready = ready == last ? p.stages : ready + STAGE_BYTES;
                loadFragments(f[step + 1 & 1], ready, 0);
            }
            if (step == 0) load(block + STAGES - 1);
            multiplyStep<COLUMNS>(sum, f[step & 1]);
        }
    }
    // The next tile's loads may only overwrite what every warp has read.
    __syncthreads();
    store<COLUMNS>(sum, tile, (Out*)p.c, p.cPitch, p.n);
#if SUMS
    if (s.signals != nullptr && s.signals[t] >= 0) {
        __syncthreads();
        if (threadIdx.x == 0) countStored(s, s.signals[t]);
    }
#endif
}

// All tiles of one width from t on; the next tile after them.
template <int WIDTH>
__device__ __forceinline__ int multiplyAll(int t, const Schedule& s, const Problem& p) {
    for (; t < s.tileCount; t += gridDim.x) {
        const Tile tile = s.tiles[t];
        if (tile.width != WIDTH) break;
        if (threadIdx.x == 0) tileBegins(s, t);
        multiply<WIDTH>(s, t, tile, p);
        if (threadIdx.x == 0) tileEnds(s, t);
    }
    return t;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
        gated_gemm(const __grid_constant__ Schedule s, const Source* sources, const __grid_constant__ Source b, void* c,
                   u64 cPitchElements, int n, int k
#if SUMS
                   , const __grid_constant__ Source sums, const Source* bs, const Part* parts
#endif
) {
    extern __shared__ __align__(128) u8 shared[];
    const Problem p = {sources, b, c, cPitchElements, n, k, sharedAddress(shared)
#if SUMS
        , sums, bs, parts
#endif
    };
    int t = blockIdx.x;
#if TILE_COLUMNS == 256
    t = multiplyAll<256>(t, s, p);
    t = multiplyAll<192>(t, s, p);
#endif
    multiplyAll<128>(t, s, p);
}
