package dev.weft.plan;

/**
 * One span's way from one rank to another: what a {@link Routing} deals to lanes. A span is never
 * divided between lanes, so one lane delivers all of a block.
 */
record Hop(int from, int to, int source, int span) {}
