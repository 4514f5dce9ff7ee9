/**
 * Options that several commands share, their checks, and what they mean: a problem and how it is
 * run. Invariant: a spec is complete and checked.
 */
package dev.weft.cli.options;
