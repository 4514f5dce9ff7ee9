/**
 * The calls of five other systems under their own names, with their arguments, rules, refusals and
 * result shapes, for users of these systems. Helion's, for example:
 *
 * {@snippet :
 * static Matrix product(Fabric fabric, Matrix rows, Matrix b) {
 *     try (HelionShared<Matrix> a =
 *             Helion.empty(fabric, rows.rows(), rows.cols(), rows.dtype())) {
 *         a.local().copyFrom(rows);
 *         return Helion.allGatherMatmul(fabric, a, b).c();
 *     }
 * }
 * }
 *
 * <p>Invariant: everything here is a thin call on {@link dev.weft.op}, on GPUs {@link
 * dev.weft.cuda}, and the packages below them. A class of this package checks what its source
 * checks, computes its source's numbers, and names the result as its source does. If a source
 * exposes parts of the operator separately (Helion's copy engine and its gated product), they are
 * built on the same fabric and the same engines. So all of Weft's guarantees hold here too:
 * gathered A is byte-exact, a product is bitwise the unfused one, every wait has a deadline.
 */
package dev.weft.compat;
