// What kernels whose warpgroups multiply have in common: how they wait for products, how operands lie in shared memory, and
// the stores of sums from registers. A kernel defines CLUSTER, STAGES, OUT_FP32, OUT_TYPE and the sizes of its boxes of C
// first.
#pragma once
#include "hopper.cuh"

__device__ __forceinline__ void wgmmaFence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmmaCommit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING>
__device__ __forceinline__ void wgmmaWait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Operands in shared memory lie as the tensor copy lays them out, with 128-byte swizzle; 1024 bytes from 8 rows to the next.
// The upper word of a descriptor is always the same, and the lower one counts 16 bytes. Above its low 18 bits, an address of
// shared memory tells which block of the cluster it belongs to.
__device__ __forceinline__ u64 descriptor(u32 low) { return (u64)(1u << 30 | 1024 >> 4) << 32 | low; }
__device__ __forceinline__ u32 descriptorLow(u32 address, u32 leadingBytes) {
    return (address & 0x3FFFF) >> 4 | leadingBytes >> 4 << 16;
}

__device__ __forceinline__ void release(Barriers barriers, int stage) {
    // One thread of a warpgroup speaks for it at one block.
    const u32 lane = threadIdx.x % 128;
    if (lane < CLUSTER) {
        arriveAt(barriers.empty(stage), lane);
    }
}

__device__ __forceinline__ u32 pack(float low, float high) {
    u32 pair;
    asm("cvt.rn." OUT_TYPE "x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// Any row, any column, any pitch: one element at a time.
template <int WIDTH>
__device__ __forceinline__ void storeEdge(const float (&d)[WIDTH / 2], void* c, u64 pitch, int row, int rowEnd, int col, int n) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < WIDTH / 2; i++) {
        const int r = row + (i & 2 ? 8 : 0);
        const int x = col + i / 4 * 8 + lane % 4 * 2 + (i & 1);
        if (r < rowEnd && x < n) {
#if OUT_FP32
            ((float*)c)[r * pitch + x] = d[i];
#else
            ((u16*)c)[r * pitch + x] = (u16)pack(d[i], 0.0f);
#endif
        }
    }
}

// The 128 threads of one consumer warpgroup.
__device__ __forceinline__ void syncGroup(int group) { asm volatile("bar.sync %0, 128;" ::"r"(group + 1) : "memory"); }

// Whole rows go by way of shared memory and the tensor copy engine, which writes while the next tile is multiplied. It
// leaves out columns beyond the matrix. Boxes are swizzled, so that no bank is met by more than two rows at once.
template <int WIDTH>
__device__ __forceinline__ void storeBoxes(const float (&d)[WIDTH / 2], const TensorMap* cMap, u32 staging, int group, int row, int col) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    const bool leader = threadIdx.x % 128 == 0;
#pragma unroll
    for (int piece = 0; piece < WIDTH / C_BOX_COLS; piece++) {
        const u32 box = staging + piece % C_BOXES * C_BOX_BYTES;
        // The copy out of this box has read it; the one out of the other may still run. A tile of an odd number of boxes
        // ends where the next one begins, so the first box waits for both.
        if (leader) {
            if (piece == 0) {
                asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
            } else {
                asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
            }
        }
        syncGroup(group);
#if OUT_FP32
        const int r = lane / 4, t = lane % 4;
#pragma unroll
        for (int j = 0; j < C_BOX_COLS / 8; j++) {
            const int at = (piece * C_BOX_COLS / 8 + j) * 4;
            const u32 chunk = (j * 2 + t / 2) ^ r;
            const u32 to = box + (warp * 16 + r) * 128 + chunk * 16 + t % 2 * 8;
            asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to), "f"(d[at]), "f"(d[at + 1]) : "memory");
            asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to + 1024), "f"(d[at + 2]), "f"(d[at + 3]) : "memory");
        }
#else
        const int r = lane % 16, half = lane / 16;
#pragma unroll
        for (int j = 0; j < C_BOX_COLS / 8; j += 2) {
            const int at = (piece * C_BOX_COLS / 8 + j) * 4;
            const u32 to = box + (warp * 16 + r) * 128 + ((j + half) ^ (r % 8)) * 16;
            asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};"
                ::"r"(to), "r"(pack(d[at], d[at + 1])), "r"(pack(d[at + 2], d[at + 3])),
                "r"(pack(d[at + 4], d[at + 5])), "r"(pack(d[at + 6], d[at + 7])) : "memory");
        }
#endif
        // Ordinary stores before, a copy by another proxy after.
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        syncGroup(group);
        if (leader) {
            asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
                ::"l"(cMap), "r"(col + piece * C_BOX_COLS), "r"(row), "r"(box) : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
    }
}

// Where C goes.
struct Output {
    const TensorMap* map;
    void* c;
    u64 pitch;
    int n;
    bool boxes; // whether the map can be used
    u32 staging;
};

// A warpgroup's rows of a tile, in boxes where they are whole.
template <int WIDTH>
__device__ __forceinline__ void storeTile(const float (&d)[WIDTH / 2], const Tile& tile, int group, const Output& out) {
    const int rank = CLUSTER > 1 ? clusterRank() : 0;
    const int groupRow = tile.row + rank * TILE_ROWS + group * 64;
    const int rowEnd = tile.row + tile.rows;
    if (out.boxes && groupRow + 64 <= rowEnd) {
        storeBoxes<WIDTH>(d, out.map, out.staging + group * C_BOXES * C_BOX_BYTES, group, groupRow, tile.col);
    } else if (groupRow < rowEnd) {
        const int row = groupRow + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
        storeEdge<WIDTH>(d, out.c, out.pitch, row, rowEnd, tile.col, out.n);
    }
}
