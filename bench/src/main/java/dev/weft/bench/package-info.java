/**
 * {@code weft bench}: Weft beside what a user has today, interleaved in one run. Arrows: the
 * benches of the devices, {@code cpu} and {@code gpu}, know {@code measure}, and {@code cpu} also
 * {@code peers}, which know {@code measure}.
 */
package dev.weft.bench;
