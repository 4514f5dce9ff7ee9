package dev.weft.fabric;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

/**
 * The state of one rank when a call ended in an error: what it waited for, what it had received and
 * sent, and what it knew about its peers. It is made only for the error, from words that are in
 * memory anyway. Ranks are numbered as in the world. Immutable.
 *
 * @param rank the rank that reports
 * @param operator the name of the operator's memory, the same on every rank; outside of calls the
 *     name of the group whose collective call was awaited, or empty
 * @param call the latest call that the rank had started, or -1 outside of calls
 */
public record FailureReport(
        int rank,
        String operator,
        int call,
        List<Wait> waits,
        List<Received> received,
        List<Sent> sent,
        List<Peer> peers) {

    public FailureReport {
        waits = List.copyOf(waits);
        received = List.copyOf(received);
        sent = List.copyOf(sent);
        peers = List.copyOf(peers);
    }

    /** The report of a rank that waits outside of an operator's calls. */
    public static FailureReport of(int rank, List<Wait> waits, List<Peer> peers) {
        return new FailureReport(rank, "", -1, waits, List.of(), List.of(), peers);
    }

    /**
     * What a thread of the rank was blocked on.
     *
     * @param thread the thread's name, without the rank
     * @param what for example {@code chunk}; a full description if there is no number
     * @param from the rank that was to signal
     * @param source the rank whose rows were awaited, or -1
     * @param chunk its chunk's number, or -1
     * @param number the awaited value (the call's number for a flag, a shard or a start), or -1
     * @param waitedMs how long it had waited
     */
    public record Wait(
            String thread,
            String what,
            int from,
            int source,
            int chunk,
            int number,
            long waitedMs) {

        /** A description, for example {@code chunk 3 of rank 2 (number 21) from rank 1}. */
        public String awaited() {
            if (number == -1) {
                return what;
            }
            String ofChunk = chunk < 0 ? "" : " " + chunk;
            String ofRank = source < 0 ? "" : " of rank " + source;
            return "%s%s%s (number %s) from rank %s".formatted(what, ofChunk, ofRank, number, from);
        }
    }

    /**
     * What had arrived of one rank's rows in the call.
     *
     * @param arrived the number of chunks that had arrived; for sums, those whose sums had all
     *     arrived
     * @param of the number of chunks that were expected
     * @param last the highest chunk that had arrived, or -1
     * @param missing the lowest chunk that had not, or -1
     */
    public record Received(int source, int arrived, int of, int last, int missing) {

        String describe() {
            return "%s of %s chunks%s%s"
                    .formatted(
                            arrived,
                            of,
                            last < 0 ? "" : ", last " + last,
                            missing < 0 ? "" : ", first missing " + missing);
        }
    }

    /**
     * What one lane had moved in the call.
     *
     * @param done the number of transfers done
     * @param of the number of transfers of the call
     * @param latest the last chunk it moved, as a run of one; null if there is none
     * @param runs everything it moved; only the first runs if there are very many
     */
    public record Sent(String lane, int done, int of, Run latest, List<Run> runs) {

        public Sent {
            runs = List.copyOf(runs);
        }

        String describe() {
            return done + " of " + of + " transfers" + (latest == null ? "" : ", last " + latest);
        }
    }

    /**
     * Chunks {@code first} to {@code last} of {@code source}, moved between two ranks.
     *
     * @param what what was moved, in the same words as {@link Wait#what}: {@code chunk}, or which
     *     sums
     */
    public record Run(String what, int from, int to, int source, int first, int last) {

        /** Whether it includes what rank {@code toRank} waits for. */
        public boolean covers(int toRank, Wait wait) {
            return to == toRank
                    && what.equals(wait.what())
                    && source == wait.source()
                    && wait.chunk() >= first
                    && wait.chunk() <= last;
        }

        @Override
        public String toString() {
            return "%s %s of rank %s%s to rank %s"
                    .formatted(
                            what,
                            first == last ? first : first + " to " + last,
                            source,
                            from == source ? "" : " from rank " + from,
                            to);
        }
    }

    /** The state of a peer. */
    public enum State {
        ABSENT,
        PRESENT,
        LEFT,
        FAILED,
        DEAD
    }

    /**
     * What was known about a peer.
     *
     * @param call the call that it had started, or -1 if that is not known
     * @param idleMs time since it was last seen to make progress, or -1 if it was not watched
     * @param silentMs time since anything arrived from it, or -1 if memory is shared
     */
    public record Peer(int rank, State state, int call, long idleMs, long silentMs) {

        /**
         * A copy with the call that the peer had started, according to the operator's words in
         * memory.
         */
        public Peer started(int latest) {
            return new Peer(rank, state, latest, idleMs, silentMs);
        }

        String describe() {
            return state.name().toLowerCase(Locale.ROOT)
                    + (call < 0 ? "" : ", in call " + call)
                    + (idleMs < 0 ? "" : ", no work for " + idleMs + " ms")
                    + (silentMs < 0 ? "" : ", nothing heard for " + silentMs + " ms");
        }
    }

    /** The report as several lines, for people. */
    public String table() {
        List<String> lines = new ArrayList<>();
        lines.add("rank " + rank + (call < 0 ? "" : ", call " + call + " of operator " + operator));
        Stream<String> names =
                Stream.concat(waits.stream().map(Wait::thread), sent.stream().map(Sent::lane));
        int width = names.mapToInt(String::length).reduce("rank 0000".length(), Math::max);
        for (Wait wait : waits) {
            String text = wait.awaited() + ", for " + wait.waitedMs() + " ms";
            lines.add(line("waits for", wait.thread(), width, text));
        }
        for (Received one : received) {
            lines.add(line("received", "rank " + one.source(), width, one.describe()));
        }
        for (Sent lane : sent) {
            lines.add(line("sent", lane.lane(), width, lane.describe()));
        }
        for (Peer peer : peers) {
            lines.add(line("peer", "rank " + peer.rank(), width, peer.describe()));
        }
        return String.join("\n", lines);
    }

    private static String line(String kind, String name, int width, String text) {
        return ("  %-11s%-" + width + "s  %s").formatted(kind, name, text);
    }
}
