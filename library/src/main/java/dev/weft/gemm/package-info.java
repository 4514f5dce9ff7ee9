/**
 * Engines that multiply some rows of A with all of B, which is packed once, and references to check
 * them.
 *
 * <p>Invariant, on which every bitwise guarantee of Weft rests: each element of the product is the
 * chain of fused multiply-adds over k = 0 .. K-1 in fp32, starting from +0, whatever the blocking,
 * the vector width and the number of rows in a call; the result is rounded once to the output type.
 * A B in blocks of 8 or 4 bits has a chain of its own, over steps of 32 k, with the same promise
 * ({@link dev.weft.gemm.code.BlockKernel}). AMX adds in its own order, which is the same for any
 * rows. Library engines (OpenBLAS) promise only the float64 bound: {@link dev.weft.gemm.Gemm.Bits}.
 *
 * <pre>{@code
 * Gemm engine = Gemms.auto(a.dtype(), b.dtype());
 * PackedB packed = engine.pack(b, false, arena);
 * Scratch scratch = engine.scratch(b.rows(), b.cols(), arena);
 * engine.multiply(a, 0, a.rows(), packed, c, 0, scratch);
 * }</pre>
 */
package dev.weft.gemm;
