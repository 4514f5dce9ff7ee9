/**
 * The command {@code weft}: {@link dev.weft.cli.Main} with its commands, and those that are about
 * this installation. Invariant: bad input is one line on standard error and exit code 2, a failed
 * run is exit code 1. The commands are in packages by task.
 */
package dev.weft.cli;
