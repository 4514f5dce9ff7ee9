package dev.weft.plan;

/**
 * A segment that a rank has or gets over the network, and hands to its host mates.
 *
 * @param due when it is there, in rows: see {@link HostRouting}
 */
record Held(int holder, int source, int segment, long due) {}
