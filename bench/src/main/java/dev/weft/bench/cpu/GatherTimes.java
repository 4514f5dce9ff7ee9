package dev.weft.bench.cpu;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What one call of each side took, by the slowest rank. Immutable; any thread may call it.
 *
 * @param calls in a row that one turn of a side makes
 * @param rounds that counted
 * @param sides by name: {@link #COLUMNS}, {@link #ROWS} and {@link #MPI}
 */
record GatherTimes(GatherSize size, int calls, int rounds, Map<String, Side> sides) {

    /** Weft, shard beside shard. */
    static final String COLUMNS = "columns";

    /** Weft, shard below shard. */
    static final String ROWS = "rows";

    /** MPI_Allgather, which puts shard below shard. */
    static final String MPI = "mpi";

    private static final String PREFIX = "weft-gather";

    /**
     * One side.
     *
     * @param speed over that of MPI: the median of the ratios of the rounds
     */
    record Side(double medianNs, double spreadNs, double speed) {}

    /** For {@link #parse}. */
    String line() {
        StringBuilder line = new StringBuilder();
        line.append("%s %s %s %s".formatted(PREFIX, size.name(), calls, rounds));
        sides.forEach(
                (name, side) ->
                        line.append(
                                " %s %s %s %s"
                                        .formatted(
                                                name,
                                                side.medianNs(),
                                                side.spreadNs(),
                                                side.speed())));
        return line.toString();
    }

    /** Those of the lines that are such; mpirun may print others. */
    static List<GatherTimes> parse(List<String> lines) {
        List<GatherTimes> all = new ArrayList<>();
        for (String line : lines) {
            String[] words = line.split(" ");
            if (!words[0].equals(PREFIX)) {
                continue;
            }
            Map<String, Side> sides = new LinkedHashMap<>();
            for (int i = 4; i + 3 < words.length; i += 4) {
                sides.put(
                        words[i],
                        new Side(
                                Double.parseDouble(words[i + 1]),
                                Double.parseDouble(words[i + 2]),
                                Double.parseDouble(words[i + 3])));
            }
            all.add(
                    new GatherTimes(
                            GatherSize.valueOf(words[1]),
                            Integer.parseInt(words[2]),
                            Integer.parseInt(words[3]),
                            sides));
        }
        return all;
    }

    /** The figures of a row: the side as Weft, MPI as the peer. */
    Map<String, Double> figures(String side) {
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("weftMedianNs", sides.get(side).medianNs());
        figures.put("weftSpreadNs", sides.get(side).spreadNs());
        figures.put("peerMedianNs", sides.get(MPI).medianNs());
        figures.put("peerSpreadNs", sides.get(MPI).spreadNs());
        figures.put("bytesPerRank", (double) size.bytes());
        figures.put("callsPerTurn", (double) calls);
        figures.put("rounds", (double) rounds);
        return figures;
    }
}
