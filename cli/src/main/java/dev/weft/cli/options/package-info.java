/**
 * Options that several commands share, their checks, and what they mean: a {@link
 * dev.weft.cli.options.RunRequest}, that is a problem and how it is run. Invariant: a request is
 * complete and checked once.
 */
package dev.weft.cli.options;
