/**
 * Kernels from their source to a function on the card: which variants there are, their compilation
 * and its cache, and the one that fits a product. Any thread may load one.
 */
package dev.weft.cuda.kernel;
