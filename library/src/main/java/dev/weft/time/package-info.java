/**
 * Deadlines, and which time counts towards them. Invariant: no threads and no waits; callers poll
 * and pass the times.
 */
package dev.weft.time;
