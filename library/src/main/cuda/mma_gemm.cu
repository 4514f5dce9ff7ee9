// The gated product for cards without Hopper's instructions: sm_80 and later.
// C[row, col] = sum over k of A[row, k] x B[k, col], in fp32, k ascending in steps of 16: an element's bits depend on
// its row of A and its column of B alone, never on the tile it lies in or on when its rows arrived.
// Launch: 256 threads, SHARED_BYTES of dynamic shared memory, any grid. Block b takes tiles b, b + gridDim.x, ...
// Tiles begin at columns that are multiples of 8. Sources are 16-byte aligned, pitches multiples of 16.
//
// Each of the eight warps multiplies 64 rows by a quarter of the tile's columns, 16 deep at a time, and loads what it
// multiplies next meanwhile. With fewer columns per warp, reading shared memory would take longer than multiplying.
#include "mma.cuh"

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
#else
typedef u16 Out;
#endif

// Shared memory holds both operands in rows of 128 bytes: 64 columns of A; of B, 64 columns or, as [N, K], 64 rows.
// Piece p of 16 bytes of row r lies at p ^ (r & 7), so that the eight rows of one ldmatrix matrix fall into eight
// different groups of banks.
__device__ __forceinline__ u32 swizzled(int row, int piece) { return row * 128 + ((piece ^ (row & 7)) << 4); }

// Bytes to read of a piece of which `elements` elements are left.
__device__ __forceinline__ int pieceBytes(int elements) {
    return elements <= 0 ? 0 : elements >= 8 ? 16 : 2 * elements;
}

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

__device__ __forceinline__ u32 nextStage(u32 stage, const Problem& p) {
    return stage == p.stages + SHARED_BYTES - STAGE_BYTES ? p.stages : stage + STAGE_BYTES;
}

// One thread's share of a tile's copies into shared memory, K block after K block: of every 32 rows one piece.
template <int WIDTH>
struct Loads {
    static constexpr int COPIES_OF_A = TILE_ROWS / 32, COPIES = COPIES_OF_A + WIDTH / 32;
    u32 filling; // stage of the next block
    int block;   // the next one
    int left;    // columns of A from there on, of this part of K; 0 or less after the last block
    int rows, columns;
    u64 pitchA, pitchB;
    const u8 *fromA, *fromB; // this thread's first pieces of the next block
    int gate, gateEnd, due;
#if SUMS
    int part;
#endif

    __device__ __forceinline__ void begin(const Schedule& s, const Tile& tile, const Problem& p) {
        filling = p.stages;
        block = 0;
        rows = tile.rows;
        columns = p.n - tile.col;
        gate = tile.gate;
        gateEnd = tile.gate + tile.gates;
        due = gate < gateEnd ? s.gates[gate].kBlock : NEVER;
        Source b = p.b;
        left = p.k;
#if SUMS
        part = 0;
        if (s.startsFromSums) due = NEVER; // all of its gates are about the sums
        if (p.parts != nullptr) {
            b = p.bs[0];
            left = p.parts[0].k;
        }
#endif
        locate(tile, p.sources[tile.source], b);
    }

    __device__ __forceinline__ void locate(const Tile& tile, const Source& a, const Source& b) {
        const int row = threadIdx.x >> 3, piece = threadIdx.x & 7;
        pitchA = a.pitch;
        pitchB = b.pitch;
        fromA = (const u8*)a.data + (tile.sourceRow + row) * pitchA + 16 * piece;
        fromB = (const u8*)b.data + tile.col * (B_TRANSPOSED ? pitchB : 2) + row * pitchB + 16 * piece;
    }

    // What must have happened before the next block is loaded.
    __device__ __forceinline__ void prepare(const Schedule& s, int t, const Problem& p) {
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
            part++;
            left = p.parts[part].k;
            const Tile tile = tileAt(s, t);
            locate(tile, p.sources[tile.source + part], p.bs[part]);
        }
#endif
    }

    // The blocks from the next one on that lie inside A and B and need nothing before they are loaded: nearly all. 0 or
    // less: none.
    __device__ __forceinline__ int wholeBlocks() const {
        const int blocks = left / BLOCK_K, toGate = due - block;
        return rows < TILE_ROWS || columns < WIDTH ? 0 : blocks < toGate ? blocks : toGate;
    }

    template <bool WHOLE>
    __device__ __forceinline__ void copy(int number) const {
        const int row = threadIdx.x >> 3, piece = threadIdx.x & 7;
        const bool ofA = number < COPIES_OF_A, alongK = ofA || B_TRANSPOSED;
        const int i = ofA ? number : number - COPIES_OF_A;
        const u32 to = filling + (ofA ? 0 : A_BYTES) + swizzled(row, piece) + i * 32 * 128;
        // B given as [K, N]: the lower 32 rows of 64 columns, the upper ones, the next 64 columns.
        const int down = 32 * (alongK ? i : i & 1), across = alongK ? 0 : 64 * (i >> 1);
        const u8* from = (ofA ? fromA : fromB) + down * (ofA ? pitchA : pitchB) + 2 * across;
        if (WHOLE) {
            copyPiece(to, from);
        } else {
            const int rowsLeft = (ofA ? rows : alongK ? columns : left) - down;
            const int elements = (alongK ? left : columns - across) - 8 * piece;
            copyPiece(to, from, row < rowsLeft ? pieceBytes(elements) : 0);
        }
    }

    // All copies of the next block, if there is one.
    __device__ __forceinline__ void copyAll() const {
        if (left <= 0) return;
#pragma unroll
        for (int number = 0; number < COPIES; number++) copy<false>(number);
    }

    // After a block's copies, if there was such a block.
    __device__ __forceinline__ void next(const Problem& p) {
        endCopyGroup();
        if (left > 0) filling = nextStage(filling, p);
        block++;
        left -= BLOCK_K;
        fromA += 2 * BLOCK_K;
        fromB += B_TRANSPOSED ? 2 * BLOCK_K : BLOCK_K * pitchB;
    }
};

// The products of a warp: 64 rows by 16 columns of every 64 of the tile.
template <int WIDTH>
using Sums = float[4][WIDTH / 32][4];

// What a warp multiplies at once, 16 deep.
template <int WIDTH>
struct Fragments {
    u32 a[4][4];
    u32 b[WIDTH / 64][4];
};

__device__ __forceinline__ int warpRow() { return (threadIdx.x >> 5 & 1) * 64; }

__device__ __forceinline__ int warpColumn() { return (threadIdx.x >> 6) * 16; }

// One ldmatrix of several: the first rows of A, all of B, the other rows of A, in the order in which they are multiplied.
template <int WIDTH>
__device__ __forceinline__ void loadFragment(Fragments<WIDTH>& f, int number, u32 stage, int step) {
    const int lane = threadIdx.x & 31;
    constexpr int OF_B = WIDTH / 64;
    if (number == 0 || number > OF_B) {
        const int i = number == 0 ? 0 : number - OF_B;
        const u32 from = stage + swizzled(warpRow() + (lane & 15), lane >> 4);
        ldmatrix(f.a[i], (from ^ 32 * step) + i * 16 * 128);
    } else {
        const int j = number - 1;
#if B_TRANSPOSED
        const u32 from = stage + A_BYTES + swizzled(warpColumn() + (lane & 7) + (lane >> 4) * 8, lane >> 3 & 1);
        ldmatrix(f.b[j], (from ^ 32 * step) + j * 64 * 128);
#else
        const u32 from = stage + A_BYTES + swizzled(lane & 15, warpColumn() / 8 + (lane >> 4));
        ldmatrixTransposed(f.b[j], from + step * 16 * 128 + j * 64 * 128);
#endif
    }
}

// Multiplies a K block, of which the first fragments are loaded already, and loads the first ones of the block after it.
// Copies the next block that fits too, if it is whole, in three groups amid the products: all copies at once would hold
// up the reads of shared memory for longer. Where reads and copies stand among the products was found by trying.
template <int WIDTH>
__device__ __forceinline__ void multiplyBlock(Sums<WIDTH>& sum, Fragments<WIDTH> (&f)[2], Loads<WIDTH>& loads, bool whole,
                                              u32& ready, const Problem& p) {
    constexpr int ACROSS = WIDTH / 32, PRODUCTS = 4 * ACROSS, READS = 4 + WIDTH / 64, STEPS = BLOCK_K / 16;
    constexpr int GAP = PRODUCTS / READS, GROUP = (Loads<WIDTH>::COPIES + 2) / 3;
#pragma unroll
    for (int step = 0; step < STEPS; step++) {
        if (step == STEPS - 1) {
            loads.next(p);
            // The next block has come, and no warp needs the stage of this one any more.
            awaitCopies<STAGES - 2>();
            __syncthreads();
            ready = nextStage(ready, p);
        }
#pragma unroll
        for (int product = 0; product < PRODUCTS; product++) {
            const int i = product / ACROSS, inRow = product % ACROSS, j = i & 1 ? ACROSS - 1 - inRow : inRow;
            if (product % GAP == 0 && product / GAP < READS) {
                loadFragment(f[step + 1 & 1], product / GAP, ready, step + 1 & STEPS - 1);
            }
            const Fragments<WIDTH>& now = f[step & 1];
            multiplyAdd(sum[i][j], now.a[i], now.b[j >> 1][2 * (j & 1)], now.b[j >> 1][2 * (j & 1) + 1]);
            if (product == 3 * PRODUCTS / 8 && step < STEPS - 1) {
#pragma unroll
                for (int number = step * GROUP; number < (step + 1) * GROUP; number++) {
                    if (number < Loads<WIDTH>::COPIES && whole) loads.template copy<true>(number);
                }
            }
        }
    }
}

// Products that are next to each other in a row of C: 2 of fp32, or 4 of 16 bits.
struct __align__(8) Neighbours {
    u32 word[2];
};

__device__ __forceinline__ void storeNeighbours(Out* to, const Neighbours& values, int left, bool aligned) {
    constexpr int COUNT = 8 / sizeof(Out);
    if (aligned && left >= COUNT) {
        *(Neighbours*)to = values;
        return;
    }
#pragma unroll
    for (int e = 0; e < COUNT; e++) {
        if (e >= left) continue;
#if OUT_FP32
        to[e] = __uint_as_float(values.word[e]);
#else
        to[e] = (u16)(values.word[e >> 1] >> 16 * (e & 1));
#endif
    }
}

template <int WIDTH>
__device__ __forceinline__ void store(const Sums<WIDTH>& sum, const Tile& tile, const Problem& p) {
    const int lane = threadIdx.x & 31;
#if OUT_FP32
    const int column = tile.col + warpColumn() + 2 * (lane & 3);
#else
    const int odd = lane & 1;
    // Neighbouring lanes swap two products of eight columns for two of the next eight, so that each stores four.
    const int column = tile.col + warpColumn() + 8 * odd + 2 * (lane & 2);
#endif
    Out* corner = (Out*)p.c + tile.row * p.cPitch + column;
    // Only the element's own alignment is promised; eight bytes at once need theirs, in every row.
    const bool aligned = (((u64)corner | p.cPitch * sizeof(Out)) & 7) == 0;
#pragma unroll
    for (int half = 0; half < 8; half++) {
        const int row = warpRow() + 8 * half + (lane >> 2);
        Out* to = corner + row * p.cPitch;
#pragma unroll
        for (int j = 0; j < WIDTH / 64; j++) {
            const int e = 2 * (half & 1), left = row < tile.rows ? p.n - column - 64 * j : 0;
            const float(&low)[4] = sum[half >> 1][2 * j];
            const float(&high)[4] = sum[half >> 1][2 * j + 1];
#if OUT_FP32
            storeNeighbours(to + 64 * j, {__float_as_uint(low[e]), __float_as_uint(low[e + 1])}, left, aligned);
            storeNeighbours(to + 64 * j + 8, {__float_as_uint(high[e]), __float_as_uint(high[e + 1])}, left - 8, aligned);
#else
            const u32 lower = rounded(low[e], low[e + 1]), upper = rounded(high[e], high[e + 1]);
            const u32 swapped = __shfl_xor_sync(0xffffffffu, odd ? lower : upper, 1);
            storeNeighbours(to + 64 * j, {odd ? swapped : lower, odd ? upper : swapped}, left, aligned);
#endif
        }
    }
}

#if SUMS
// What a tile starts from; nothing is read beyond its rows and columns.
template <int WIDTH>
__device__ __forceinline__ void loadSums(Sums<WIDTH>& sum, const Tile& tile, const Problem& p) {
    const int lane = threadIdx.x & 31;
    const int column = tile.col + warpColumn() + 2 * (lane & 3);
#pragma unroll
    for (int half = 0; half < 8; half++) {
        const int row = warpRow() + 8 * half + (lane >> 2);
        if (row >= tile.rows) continue;
        const float* from = (const float*)((const u8*)p.sums.data + (tile.row + row) * p.sums.pitch) + column;
#pragma unroll
        for (int j = 0; j < WIDTH / 32; j++) {
            const int across = 64 * (j >> 1) + 8 * (j & 1), left = p.n - column - across;
            float(&quad)[4] = sum[half >> 1][j];
            if (left >= 1) quad[2 * (half & 1)] = from[across];
            if (left >= 2) quad[2 * (half & 1) + 1] = from[across + 1];
        }
    }
}
#endif

template <int WIDTH>
__device__ __forceinline__ void multiply(const Schedule& s, int t, const Tile& tile, const Problem& p) {
    u32 ready = p.stages; // stage of the block that is multiplied
    Loads<WIDTH> loads;
    loads.begin(s, tile, p);
#pragma unroll 1
    for (int i = 0; i < STAGES - 1; i++) {
        loads.prepare(s, t, p);
        loads.copyAll();
        loads.next(p);
    }
    Sums<WIDTH> sum = {};
#if SUMS
    if (s.startsFromSums) {
        for (int gate = tile.gate; gate < tile.gate + tile.gates; gate++) {
            if (threadIdx.x == 0) awaitGate(s, t, gate);
        }
        __syncthreads();
        loadSums<WIDTH>(sum, tile, p);
    }
#endif
    awaitCopies<STAGES - 2>();
    __syncthreads();
    // Two sets: one is multiplied while the other is loaded.
    Fragments<WIDTH> f[2];
#pragma unroll
    for (int i = 0; i < 4 + WIDTH / 64; i++) loadFragment(f[0], i, ready, 0);
    int whole = 0; // blocks that are loaded next
#pragma unroll 1
    for (int block = 0; block < s.kBlocks; block++, whole--) {
        if (whole <= 0) {
            loads.prepare(s, t, p);
            whole = loads.wholeBlocks();
            if (whole <= 0) loads.copyAll();
        }
        multiplyBlock<WIDTH>(sum, f, loads, whole > 0, ready, p);
    }
    // The next tile's loads may only overwrite what every warp has read.
    __syncthreads();
    store<WIDTH>(sum, tile, p);
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
        const Tile tile = tileAt(s, t);
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
