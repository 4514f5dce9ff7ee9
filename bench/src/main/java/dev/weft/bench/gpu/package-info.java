/**
 * {@code weft bench gpu}: one class per question. Invariant: a row is verified in the run that
 * measured it; a wrong one says FAILED, the others go on, and the exit code is 1.
 */
package dev.weft.bench.gpu;
