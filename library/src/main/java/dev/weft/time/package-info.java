/**
 * Deadlines, which time counts towards them, and times in settings. Invariant: no threads and no
 * waits; callers poll and pass the times.
 */
package dev.weft.time;
