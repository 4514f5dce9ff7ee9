/**
 * Runs the lanes of a plan on one rank: the memory that peers can reach, the threads that move
 * chunks, and the spans and reports that they leave. Operators on CPUs and on GPUs share it.
 */
package dev.weft.op.exec;
