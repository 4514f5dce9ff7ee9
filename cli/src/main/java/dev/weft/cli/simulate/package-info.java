/**
 * Plans priced on a model of a machine: {@code plan}, {@code sweep}, {@code calibrate}, and what
 * {@code run -r sim} needs. Invariant: nothing is multiplied here.
 */
package dev.weft.cli.simulate;
