package dev.weft.fabric;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * How things stood with one rank when a call ended in an error: what it waited for, what had come,
 * what it had sent, and what it knew of its peers. Put together from words that lie in memory
 * anyway, and only for the error. Ranks are numbered as in the world. Immutable.
 *
 * @param rank whose report it is
 * @param operator the name of the operator's memory, the same on every rank; outside of calls that
 *     of the group whose collective call was awaited, or empty
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

    /** Of a rank that waits outside of an operator's calls. */
    public static FailureReport of(int rank, List<Wait> waits, List<Peer> peers) {
        return new FailureReport(rank, "", -1, waits, List.of(), List.of(), peers);
    }

    /**
     * What a thread of the rank was blocked on.
     *
     * @param thread the thread's name, without the rank
     * @param what in words, as in {@link Awaited}; all there is to say where there is no number
     * @param from the rank that was to signal
     * @param source the rank whose rows were awaited, or -1
     * @param chunk its chunk's number, or -1
     * @param number the awaited value, for a flag, a shard or a start the number of the call; or -1
     * @param waitedMs for how long
     */
    public record Wait(
            String thread,
            String what,
            int from,
            int source,
            int chunk,
            int number,
            long waitedMs) {

        /** For example {@code chunk 3 of rank 2 (number 21) from rank 1}. */
        public String awaited() {
            if (number == -1) {
                return what;
            }
            return what
                    + (chunk < 0 ? "" : " " + chunk)
                    + (source < 0 ? "" : " of rank " + source)
                    + " (number "
                    + number
                    + ") from rank "
                    + from;
        }
    }

    /**
     * What had come of one rank's rows in the call.
     *
     * @param arrived chunks
     * @param of chunks of the whole shard
     * @param last the highest chunk that had come, or -1
     * @param missing the lowest that had not, or -1
     */
    public record Received(int source, int arrived, int of, int last, int missing) {

        String describe() {
            return arrived
                    + " of "
                    + of
                    + " chunks"
                    + (last < 0 ? "" : ", last " + last)
                    + (missing < 0 ? "" : ", first missing " + missing);
        }
    }

    /**
     * What one lane had moved in the call.
     *
     * @param done transfers
     * @param of transfers of the whole call
     * @param latest the chunk it moved last, as a run of one; null where there is none
     * @param runs all that it moved; the first of them where there are very many
     */
    public record Sent(String lane, int done, int of, Run latest, List<Run> runs) {

        public Sent {
            runs = List.copyOf(runs);
        }

        String describe() {
            return done + " of " + of + " transfers" + (latest == null ? "" : ", last " + latest);
        }
    }

    /** Chunks {@code first} to {@code last} of {@code source}, which went between two ranks. */
    public record Run(int from, int to, int source, int first, int last) {

        /** Whether chunk {@code chunk} of {@code ofSource} has gone to {@code toRank} with it. */
        public boolean covers(int toRank, int ofSource, int chunk) {
            return to == toRank && source == ofSource && chunk >= first && chunk <= last;
        }

        @Override
        public String toString() {
            return "chunk "
                    + (first == last ? first : first + " to " + last)
                    + " of rank "
                    + source
                    + (from == source ? "" : " from rank " + from)
                    + " to rank "
                    + to;
        }
    }

    /** How a peer's end, or its presence, was known. */
    public enum State {
        ABSENT,
        PRESENT,
        LEFT,
        FAILED,
        DEAD
    }

    /**
     * What was known of a peer.
     *
     * @param call the call that it had started, or -1 where that is not known
     * @param idleMs time since it was last seen to have done any work, or -1 if nobody looked
     * @param silentMs time since anything at all came from it, or -1 where memory is shared
     */
    public record Peer(int rank, State state, int call, long idleMs, long silentMs) {

        /** The same with what the operator's words say. */
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

    /** Several lines: what is in here, for people. */
    public String table() {
        List<String> lines = new ArrayList<>();
        lines.add("rank " + rank + (call < 0 ? "" : ", call " + call + " of operator " + operator));
        int width = 0;
        for (Wait wait : waits) {
            width = Math.max(width, wait.thread().length());
        }
        for (Sent lane : sent) {
            width = Math.max(width, lane.lane().length());
        }
        width = Math.max(width, "rank 0000".length());
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
        return "  "
                + kind
                + " ".repeat(11 - kind.length())
                + name
                + " ".repeat(Math.max(0, width - name.length()))
                + "  "
                + text;
    }

    /** All of it in one line, for {@link #parse}. */
    public String text() {
        return FailureReportText.write(this);
    }

    /**
     * What {@link #text} gave.
     *
     * @throws IllegalArgumentException with one line, if it is anything else
     */
    public static FailureReport parse(String text) {
        return FailureReportText.read(text);
    }
}
