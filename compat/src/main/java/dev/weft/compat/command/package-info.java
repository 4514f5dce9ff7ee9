/**
 * The commands of the source systems: {@code ring}, {@code fgcc}, {@code gather} and {@code
 * helion}. Invariant: inputs, options and verdict are those of the source.
 */
package dev.weft.compat.command;
