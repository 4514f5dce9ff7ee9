package dev.weft.stress;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * What became of a case, and whether that is all right.
 *
 * @param happened whether the fault did
 * @param left what stayed behind, in words
 */
record Ending(Case run, boolean happened, List<RankEnd> ranks, List<String> left) {

    Ending withLeft(List<String> more) {
        List<String> all = new ArrayList<>(left);
        all.addAll(more);
        return new Ending(run, happened, ranks, all);
    }

    /** Everything that is not as promised; empty where all is. */
    List<String> problems() {
        List<String> problems = new ArrayList<>(left);
        for (RankEnd end : ranks) {
            String problem = problem(end);
            if (problem != null) {
                problems.add("rank " + end.rank() + ": " + problem);
            }
        }
        return problems;
    }

    private String problem(RankEnd end) {
        Fault fault = run.fault();
        boolean silenced = happened && fault.kind().silencesTheRank() && end.rank() == fault.rank();
        return switch (end.how()) {
            case RIGHT -> null;
            case WRONG -> "WRONG RESULT: " + end.message();
            case HUNG -> silenced ? null : "hang";
            case DIED -> silenced ? null : "ended without a word";
            case OTHER -> silenced ? null : "untyped " + end.kind() + ": " + end.message();
            case ERROR -> {
                if (fault.kind().isHarmless()) {
                    yield "an error though nothing was lost: " + end.message();
                }
                if (silenced) {
                    yield null;
                }
                if (!happened || end.afterMs() < 0 && fault.phase() != Fault.Phase.RENDEZVOUS) {
                    yield "an error before its cause: " + end.message();
                }
                yield end.afterMs() > run.promisedMs()
                        ? "its error came after " + end.afterMs() + " ms: " + end.message()
                        : null;
            }
        };
    }

    /** The slowest error of a rank that lived on, or -1 where there was none. */
    long errorMs() {
        return ranks.stream()
                .filter(end -> end.how() == RankEnd.How.ERROR)
                .filter(
                        end ->
                                !run.fault().kind().silencesTheRank()
                                        || end.rank() != run.fault().rank())
                .mapToLong(RankEnd::afterMs)
                .max()
                .orElse(-1);
    }

    long errors() {
        return ranks.stream().filter(end -> end.how() == RankEnd.How.ERROR).count();
    }

    Workload.Tally tally() {
        return ranks.stream()
                .map(RankEnd::tally)
                .reduce(Workload.Tally.NOTHING, Workload.Tally::plus);
    }

    /** In words, ranks alike taken together. */
    String describe() {
        Map<String, Integer> kinds = new TreeMap<>();
        for (RankEnd end : ranks) {
            boolean culprit =
                    happened
                            && run.fault().kind().silencesTheRank()
                            && end.rank() == run.fault().rank();
            if (!culprit) {
                String word =
                        switch (end.how()) {
                            case RIGHT -> "right";
                            case ERROR -> end.kind().replace("Exception", "");
                            default -> end.how() + " " + end.kind();
                        };
                kinds.merge(word, 1, Integer::sum);
            }
        }
        StringBuilder text = new StringBuilder();
        kinds.forEach(
                (kind, count) ->
                        text.append(text.isEmpty() ? "" : ", ")
                                .append(count)
                                .append(' ')
                                .append(kind));
        return text.toString();
    }
}
