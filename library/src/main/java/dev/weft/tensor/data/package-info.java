/**
 * Data generated from a seed, element by element, the same on every rank and machine.
 *
 * <p>Invariant: a value depends only on its index, so any rank can generate any part of a matrix.
 */
package dev.weft.tensor.data;
