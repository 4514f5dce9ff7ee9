/**
 * Bindings of native functions (futex, CPU affinity, executable memory, MPI, OpenBLAS, CUDA),
 * written by hand with the foreign-function API: one small file per library.
 *
 * <p>Invariant: nothing here is required to load Weft. A library or symbol that is missing is an
 * error only when it is called, with the reason and how to get it.
 */
package dev.weft.ffi;
