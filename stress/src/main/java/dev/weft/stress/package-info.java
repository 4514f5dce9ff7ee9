/**
 * The bad day, on purpose: faults in signals and processes, stragglers, soak. A {@link
 * dev.weft.stress.Case} says all there is to say about one run; it is made from a seed, written as
 * one line of words, and replayed from that line. Whatever happens in it, every rank must end with
 * the right result or with a typed error within the deadline and a second, and nothing may stay
 * behind.
 */
package dev.weft.stress;
