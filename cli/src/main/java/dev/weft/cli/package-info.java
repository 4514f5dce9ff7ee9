/**
 * The command {@code weft}: options, launchers, measurement and verification around the library.
 * Invariant: bad input is one line on standard error and exit code 2, a failed run is exit code 1,
 * and files are written whole or not at all.
 */
package dev.weft.cli;
