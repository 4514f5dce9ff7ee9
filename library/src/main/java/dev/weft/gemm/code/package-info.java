/**
 * Kernels in machine code, of products and of what is done to their sums: assemblers that write
 * only the instructions that kernels use, and the generators that write kernels with them.
 *
 * <p>Invariant: a generator is pure. It returns bytes for sizes and types, and any machine can
 * write any other's kernels; only {@link dev.weft.ffi.ExecutableMemory} makes them executable.
 */
package dev.weft.gemm.code;
