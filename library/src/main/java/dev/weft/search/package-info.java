/**
 * Which plan to run: plans as a machine would run them, for the simulator to price. Pure, but for
 * what its callers try.
 */
package dev.weft.search;
