package dev.weft.compat;

import dev.weft.tensor.Matrix;

/**
 * What {@link Helion#allGatherMatmul} gives. Matrices that the caller did not supply are fresh and
 * stay valid as long as something refers to them.
 *
 * @param aOut gathered A, [M, K]
 * @param c gathered A times B, [M, N]
 */
public record HelionResult(Matrix aOut, Matrix c) {}
