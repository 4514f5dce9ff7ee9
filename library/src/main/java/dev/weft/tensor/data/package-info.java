/**
 * Data generated from a seed, element by element, the same on every rank and machine.
 *
 * <p>Invariant: a value depends on its index alone, so any part of a matrix can be made by anyone.
 */
package dev.weft.tensor.data;
