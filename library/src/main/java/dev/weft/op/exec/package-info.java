/**
 * What runs the lanes of a plan on a rank: its memory that peers reach, the threads that move
 * chunks, and the spans and reports that they leave. Operators on the CPU and on GPUs share it.
 */
package dev.weft.op.exec;
