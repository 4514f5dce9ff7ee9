/**
 * What operators on CPUs and on GPUs share: what is wanted, the threads of a rank, and their spans
 * and reports.
 */
package dev.weft.op.exec;
