/**
 * Element types, matrix views over off-heap memory, the files that hold matrices, and data
 * generated from a seed.
 *
 * <p>Invariants: sizes and offsets are 64 bits wide everywhere, and nothing in this package starts
 * a thread.
 *
 * <pre>{@code
 * try (Arena arena = Arena.ofConfined()) {
 *     Matrix a = Matrix.allocate(arena, DType.BF16, 1024, 512);
 *     new NormalData(19, 0).fill(a);
 *     MatrixFiles.write("a.npy", a);
 *     Matrix mapped = MatrixFiles.read("a.npy", null, MatrixFiles.ANY, 512, arena);
 * }
 * }</pre>
 */
package dev.weft.tensor;
