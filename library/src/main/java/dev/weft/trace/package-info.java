/**
 * What a call did: a {@link dev.weft.trace.Timeline} of its copies, waits and products on one rank,
 * and {@link dev.weft.trace.CallLog}, which writes those of many calls to a file for {@code weft
 * report}. {@link dev.weft.trace.View} says which part of a call ran.
 *
 * {@snippet :
 * static long busyNs(Timeline timeline, Timeline.Kind kind) {
 *     return timeline.tracks().stream()
 *             .flatMap(track -> track.spans().stream())
 *             .filter(span -> span.kind() == kind)
 *             .mapToLong(span -> span.endNs() - span.startNs())
 *             .sum();
 * }
 * }
 *
 * <p>Invariant: records only; nothing here measures.
 */
package dev.weft.trace;
