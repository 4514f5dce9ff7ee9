/**
 * How things are measured and told, whatever the device: turns, rows, the record, numbers that
 * programs in other languages can make alike. Invariant: a row never compares figures of two runs.
 */
package dev.weft.bench.measure;
