/** {@code weft bench cpu}: one class per question. Invariant: a wrong product ends the bench. */
package dev.weft.bench.cpu;
