/**
 * What numbers lie where: element types, matrix views over off-heap memory, the files they come
 * from, and data that is made up from a seed. Invariant: sizes and offsets are 64 bits wide
 * everywhere, and nothing in this room starts a thread.
 */
package dev.weft.tensor;
