/**
 * The product of some rows of A with all of B. B is packed once, rows are streamed.
 *
 * <p>Invariant, on which every bitwise guarantee of Weft rests: each element of the product is the
 * chain of fused multiply-adds over k = 0 .. K-1 in fp32, starting from +0, whatever the blocking,
 * the vector width and the number of rows in a call; the result is rounded once to the output type.
 * Engines of others (OpenBLAS) keep to no such chain and promise the float64 bound alone: {@link
 * dev.weft.gemm.Gemm#sameBitsForAnyRows}.
 */
package dev.weft.gemm;
