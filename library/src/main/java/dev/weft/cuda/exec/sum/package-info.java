/**
 * Plans of sums on a GPU: products whose sums come and go through pinned host memory or between
 * GPUs that reach each other. What gathers and sums share is in {@code cuda.exec}.
 */
package dev.weft.cuda.exec.sum;
