package dev.weft.stress;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * What became of a case, and whether that is all right.
 *
 * @param occurred whether the fault did
 * @param left what stayed behind, in words
 */
record Ending(Case run, boolean occurred, List<RankEnd> ranks, List<String> left) {

    Ending withLeft(List<String> more) {
        List<String> all = new ArrayList<>(left);
        all.addAll(more);
        return new Ending(run, occurred, ranks, all);
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
        boolean silenced = occurred && fault.type().silencesTheRank() && end.rank() == fault.rank();
        return switch (end.how()) {
            case RIGHT -> null;
            case WRONG -> "WRONG RESULT: " + end.message();
            case HUNG -> silenced ? null : "hang";
            case DIED -> silenced ? null : "ended without a word";
            case OTHER -> silenced ? null : "untyped " + end.error() + ": " + end.message();
            case ERROR -> {
                if (fault.type().isHarmless()) {
                    yield "an error though nothing was lost: " + end.message();
                }
                if (silenced) {
                    yield null;
                }
                if (!occurred || end.afterMs() < 0 && fault.phase() != Fault.Phase.RENDEZVOUS) {
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
                                !run.fault().type().silencesTheRank()
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
                    occurred
                            && run.fault().type().silencesTheRank()
                            && end.rank() == run.fault().rank();
            if (!culprit) {
                String word =
                        switch (end.how()) {
                            case RIGHT -> "right";
                            case ERROR -> end.error().replace("Exception", "");
                            default -> end.how() + " " + end.error();
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
