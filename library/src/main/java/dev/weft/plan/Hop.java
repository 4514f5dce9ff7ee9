package dev.weft.plan;

/**
 * One segment's way from one rank to another: what a {@link Routing} deals to lanes. A segment is
 * never divided between lanes, so one lane delivers all of a block.
 */
record Hop(int from, int to, int source, int segment) {}
