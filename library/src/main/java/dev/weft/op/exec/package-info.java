/**
 * Runs the lanes of a plan on one rank: the memory that peers can reach, the threads that move
 * chunks, and their spans and reports. Operators on CPUs and on GPUs share it.
 */
package dev.weft.op.exec;
