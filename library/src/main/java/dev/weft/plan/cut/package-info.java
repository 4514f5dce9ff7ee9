/**
 * How callers want shards to be cut, as builders and options take it. Invariant: as pure as {@link
 * dev.weft.plan}.
 */
package dev.weft.plan.cut;
