/**
 * Kernels from their source to a launch: which variants there are, their compilation and its cache,
 * the tiles of a product and the gates before them, and the times that kernels note, and the model
 * by which they are priced. No class here knows what a plan is.
 */
package dev.weft.cuda.kernel;
