package dev.weft.plan;

/**
 * A segment that a rank owns or gets over the network, and passes to the other ranks of its host.
 *
 * @param due when it is available, in rows: see {@link HostRouting}
 */
record Held(int holder, int source, int segment, long due) {}
