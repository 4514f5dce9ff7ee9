/**
 * Benchmarks. Invariant: a benchmark that computes a wrong answer fails; it does not report a time.
 */
package dev.weft.bench.jmh;
