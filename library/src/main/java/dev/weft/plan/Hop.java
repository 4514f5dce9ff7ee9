package dev.weft.plan;

/** One segment's way between ranks, never divided between lanes: one delivers all of a block. */
record Hop(int from, int to, int source, int segment) {}
