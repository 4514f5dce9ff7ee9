// What kernels for Hopper have in common: barriers in shared memory, the tensor copies that complete on them, and a ring
// of stages. A kernel defines STAGES first.
#pragma once
#include "schedule.cuh"

struct __align__(64) TensorMap {
    u64 words[16];
};

__device__ __forceinline__ u32 clusterRank() {
    u32 r;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
    return r;
}

__device__ __forceinline__ void barrierInit(u32 barrier, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count));
}

__device__ __forceinline__ void expectBytes(u32 barrier, u32 bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

__device__ __forceinline__ void arriveAt(u32 barrier, u32 rank) {
    asm volatile(
        "{ .reg .b32 remote; mapa.shared::cluster.u32 remote, %0, %1; mbarrier.arrive.shared::cluster.b64 _, [remote]; }"
        ::"r"(barrier), "r"(rank) : "memory");
}

__device__ __forceinline__ void awaitPhase(u32 barrier, u32 parity) {
    asm volatile(
        "{ .reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @done bra over; bra again; over: }"
        ::"r"(barrier), "r"(parity) : "memory");
}

__device__ __forceinline__ void load(u32 to, const TensorMap* map, int x, int y, u32 barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
        ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(barrier) : "memory");
}

// The same place and the same barrier in every block of the cluster.
__device__ __forceinline__ void loadForAll(u32 to, const TensorMap* map, int x, int y, u32 barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%2, %3}], [%4], %5;"
        ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(barrier), "h"((u16)((1 << CLUSTER) - 1)) : "memory");
}

// A position in the ring of stages, and how often the ring has gone round.
struct Ring {
    int stage = 0;
    u32 parity = 0;
    __device__ __forceinline__ void advance() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

struct Barriers {
    u32 base;
    __device__ __forceinline__ u32 full(int stage) const { return base + 8 * stage; }
    __device__ __forceinline__ u32 empty(int stage) const { return base + 8 * (STAGES + stage); }
};

__device__ __forceinline__ int firstTile() { return blockIdx.x / CLUSTER; }
__device__ __forceinline__ int tileStride() { return gridDim.x / CLUSTER; }
