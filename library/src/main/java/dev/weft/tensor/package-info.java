/**
 * Element types, matrix views over off-heap memory, and the files that hold matrices.
 *
 * {@snippet :
 * static Matrix written(String file, Arena arena) throws IOException {
 *     Matrix a = Matrix.allocate(arena, DType.BF16, 1024, 512);
 *     a.fill(new Random(19)::nextGaussian);
 *     MatrixFiles.write(file, a); // a.npy, or model.safetensors:a
 *     return MatrixFiles.locate(file, DType.BF16, MatrixFiles.ANY, 512).read(arena);
 * }
 * }
 *
 * <p>Invariants: sizes and offsets are 64 bits wide everywhere, and nothing in this package starts
 * a thread.
 */
package dev.weft.tensor;
