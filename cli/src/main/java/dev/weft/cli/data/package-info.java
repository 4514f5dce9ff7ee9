/**
 * The files that a command reads and writes: data folders with their stamps and locks, and the
 * user's own matrices. Invariant: a file that Weft has not written is not replaced, and none is
 * both read and written.
 */
package dev.weft.cli.data;
