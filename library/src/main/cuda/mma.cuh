// Instructions that came with sm_80: copies into shared memory in the background, reads of
// 8 x 8 matrices, and products of a warp.
#pragma once
#include "schedule.cuh"

#ifndef IN_BF16
#define IN_BF16 0 // 0: A and B are fp16, 1: bf16
#endif
#ifndef OUT_FP32
#define OUT_FP32 0 // 0: C has the type of A and B, 1: fp32
#endif

// Copies a piece of 16 bytes.
__device__ __forceinline__ void copyPiece(u32 shared, const u8* global) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}

// Likewise: the first `bytes` are read, the rest become zero. With 0 nothing is read at all.
__device__ __forceinline__ void copyPiece(u32 shared, const u8* global, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(bytes) : "memory");
}

__device__ __forceinline__ void endCopyGroup() { asm volatile("cp.async.commit_group;" ::: "memory"); }

// Waits until all but the newest groups of this thread's copies have landed.
template <int NEWEST>
__device__ __forceinline__ void awaitCopies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(NEWEST) : "memory");
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

#if !OUT_FP32
__device__ __forceinline__ u32 rounded(float low, float high) {
    u32 packed;
    asm(PACK " %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
    return packed;
}
#endif
