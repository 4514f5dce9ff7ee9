/**
 * How waits count time towards a deadline, and waits that an interrupt does not end. Invariant: no
 * threads of its own; callers poll and pass the times.
 */
package dev.weft.waiting;
