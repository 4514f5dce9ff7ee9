package dev.weft.bench.cpu;

import dev.weft.plan.Algorithm;
import dev.weft.plan.Chunks;
import java.util.Collections;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/**
 * What {@code auto} and every algorithm took for one of the {@link RandomProblem}s. Immutable; any
 * thread may call it.
 *
 * @param problem its index
 * @param chosen what auto chose: the algorithm and, after a slash, the chunks per source
 * @param rounds that counted
 * @param sides by algorithm, and {@link #SEQUENTIAL_AGAIN}
 */
record AutoTimes(int problem, String chosen, int rounds, Map<String, Side> sides) {

    /** A second sequential operator: what it differs by from the first is noise. */
    static final String SEQUENTIAL_AGAIN = "sequential-again";

    private static final String PREFIX = "weft-auto";
    private static final double NEAR = 1.05;

    /** Of a median, in quartile distances over the root of the number of rounds: 1.253 / 1.349. */
    private static final double STANDARD_ERROR = 0.93;

    /** The slowest rank's times. */
    record Side(double medianNs, double spreadNs) {}

    AutoTimes {
        sides = Collections.unmodifiableMap(new LinkedHashMap<>(sides));
    }

    double medianNs(Algorithm algorithm) {
        return sides.get(algorithm.label()).medianNs();
    }

    /** The fastest algorithm; the second sequential operator is none, and would get two chances. */
    String best() {
        return sides.keySet().stream()
                .filter(name -> !name.equals(Algorithm.AUTO.label()))
                .filter(name -> !name.equals(SEQUENTIAL_AGAIN))
                .min(Comparator.comparingDouble(this::planNs))
                .orElseThrow();
    }

    /**
     * What the choice took; where an algorithm's operator has the same plan, the mean of the two.
     */
    double choiceNs() {
        double autoNs = medianNs(Algorithm.AUTO);
        String[] plan = chosen.split("/");
        boolean sameCut = plan[1].equals(Integer.toString(Chunks.MIN_CHUNKS_PER_SOURCE));
        return sameCut ? (autoNs + sides.get(plan[0]).medianNs()) / 2 : autoNs;
    }

    /** Two operators with one plan differ by where their memory lies: neither is better. */
    private double planNs(String name) {
        boolean isChoice = chosen.equals(name + "/" + Chunks.MIN_CHUNKS_PER_SOURCE);
        return isChoice ? choiceNs() : sides.get(name).medianNs();
    }

    double overBest() {
        return choiceNs() / planNs(best());
    }

    double overSequential() {
        return medianNs(Algorithm.AUTO) / medianNs(Algorithm.SEQUENTIAL);
    }

    /**
     * What two medians of this run may differ by without meaning anything, as a part of sequential:
     * what the two sequential operators differ by or, if that is more, twice the standard error of
     * the difference between auto and sequential.
     */
    double noise() {
        Side sequential = sides.get(Algorithm.SEQUENTIAL.label());
        Side auto = sides.get(Algorithm.AUTO.label());
        double apart = Math.abs(sides.get(SEQUENTIAL_AGAIN).medianNs() / sequential.medianNs() - 1);
        double error =
                STANDARD_ERROR
                        * Math.hypot(auto.spreadNs(), sequential.spreadNs())
                        / Math.sqrt(rounds)
                        / sequential.medianNs();
        return Math.max(apart, 2 * error);
    }

    boolean isNearBest() {
        return overBest() <= NEAR;
    }

    boolean isSlowerThanSequential() {
        return overSequential() > 1 + noise();
    }

    /** By name and unit, what is worth a look first. */
    Map<String, Double> figures() {
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("autoOverBest", overBest());
        figures.put("autoOverSequential", overSequential());
        figures.put("noise", noise());
        figures.put("rounds", (double) rounds);
        sides.forEach(
                (name, side) -> {
                    figures.put(camelCase(name) + "Ns", side.medianNs());
                    figures.put(camelCase(name) + "SpreadNs", side.spreadNs());
                });
        figures.put("pass", isNearBest() && !isSlowerThanSequential() ? 1.0 : 0.0);
        return figures;
    }

    /** {@code meshPush} for {@code mesh-push}. */
    static String camelCase(String label) {
        StringBuilder text = new StringBuilder();
        for (String word : label.split("-")) {
            boolean first = text.isEmpty();
            text.append(first ? word.charAt(0) : Character.toUpperCase(word.charAt(0)));
            text.append(word, 1, word.length());
        }
        return text.toString();
    }

    /** One line for another process. */
    String line() {
        return PREFIX
                + sides.entrySet().stream()
                        .map(
                                side ->
                                        side.getKey()
                                                + " "
                                                + side.getValue().medianNs()
                                                + " "
                                                + side.getValue().spreadNs())
                        .collect(
                                Collectors.joining(
                                        " ",
                                        " " + problem + " " + chosen + " " + rounds + " ",
                                        ""));
    }

    /** Those of the lines that tell of times. */
    static List<AutoTimes> parse(List<String> lines) {
        return lines.stream()
                .filter(line -> line.startsWith(PREFIX + " "))
                .map(AutoTimes::parse)
                .toList();
    }

    private static AutoTimes parse(String line) {
        String[] words = line.strip().split(" ");
        Map<String, Side> sides = new LinkedHashMap<>();
        for (int i = 4; i < words.length; i += 3) {
            sides.put(
                    words[i],
                    new Side(Double.parseDouble(words[i + 1]), Double.parseDouble(words[i + 2])));
        }
        return new AutoTimes(
                Integer.parseInt(words[1]), words[2], Integer.parseInt(words[3]), sides);
    }
}
