package dev.weft.report;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import dev.weft.report.ShownRun.Detail;
import dev.weft.report.ShownRun.Fact;
import dev.weft.report.ShownRun.State;
import dev.weft.report.ShownRun.View;
import java.util.List;
import org.junit.jupiter.api.Test;

/** The figures of a page are the record's. */
class RunViewTest {

    private static Fact fact(ShownRun run, String key) {
        return run.facts().stream()
                .filter(fact -> fact.key().equals(key))
                .findFirst()
                .orElseThrow();
    }

    private static String detail(ShownRun run, String label) {
        return run.details().stream()
                .filter(detail -> detail.label().equals(label))
                .map(Detail::value)
                .findFirst()
                .orElseThrow();
    }

    @Test
    void aLabelIsTheNameOrElseTheFileIs() {
        assertEquals("r.json", new RecordMaker().shown().name());
        assertEquals("before", new RecordMaker().label("before").shown().name());
        assertEquals("", new RecordMaker().label("").shown().name(), "what the user said");
    }

    @Test
    void runsOfOneNameAreToldApart() {
        ShownRun one = new RecordMaker().shown();
        ShownRun other = new RecordMaker().ranks(4, 2).shown();
        ShownRun named = new RecordMaker().label("before").shown();
        assertEquals(
                List.of("r.json: " + one.subtitle(), "before", "r.json: " + other.subtitle()),
                names(one, named, other));
        assertEquals(
                List.of("r.json: " + one.subtitle() + " #1", "r.json: " + one.subtitle() + " #2"),
                names(one, new RecordMaker().shown()));
    }

    private static List<String> names(ShownRun... runs) {
        return PageData.comparison(List.of(runs)).runs().stream().map(ShownRun::name).toList();
    }

    @Test
    void theSubtitleSaysWhatRanWhere() {
        assertEquals(
                "4 ranks in 2 groups (threads) on cpu, mesh-pull, [512 x 32] x [32 x 16], fp16",
                new RecordMaker().ranks(4, 2).shown().subtitle());
        assertEquals(
                "4 ranks simulated on trn2, mesh-pull, [1024 x 32] x [32 x 16], fp16",
                new RecordMaker().simulatedOn("trn2").shown().subtitle());
    }

    @Test
    void factsAreTheRecordsFigures() {
        RunRecord record = new RecordMaker().record();
        ShownRun run = RunView.of(record, "r.json");
        assertEquals(2100.0 / 1700, fact(run, "speedup").value());
        assertEquals("1.24x", fact(run, "speedup").text());
        assertEquals("sequential 2.100 ms / pipelined 1.700 ms", fact(run, "speedup").note());
        assertEquals(400.0 / 600, fact(run, "overlapEfficiency").value(), 1e-12);
        assertEquals("66.7%", fact(run, "overlapEfficiency").text());
        assertEquals(1500.0 / 1700, fact(run, "limitFraction").value());
        assertEquals(record.tflops(), fact(run, "tflops").value());
        assertEquals(4, run.facts().size());
        assertEquals(record.flopsPerRank() / record.problem().m(), run.flopsPerRow());
        assertEquals(64, run.bytesPerRow());
        assertFalse(run.simulated());
    }

    @Test
    void whatCannotBeMeasuredSaysSo() {
        ShownRun run = new RecordMaker().views(1500, 400, 2100, 1000.0, 1700.0, 2400.0).shown();
        Fact efficiency = fact(run, "overlapEfficiency");
        assertTrue(Double.isNaN(efficiency.value()));
        assertEquals("not measurable", efficiency.text());
    }

    @Test
    void viewsShowTheSamples() {
        ShownRun run = new RecordMaker().views(1500, 400, 2100, 1600.0, 1800.0, 1700.0).shown();
        assertEquals(
                List.of("computeOnly", "commOnly", "sequential", "pipelined"),
                run.views().stream().map(View::key).toList());
        View pipelined = run.views().getLast();
        assertEquals(List.of(1600.0, 1800.0, 1700.0), pipelined.samplesUs());
        assertEquals(
                List.of(
                        new ShownRun.ViewPart("gather", 600),
                        new ShownRun.ViewPart("product", 1500)),
                run.views().get(2).parts());
    }

    @Test
    void theVerdictIsTheVerifications() {
        ShownRun passed = new RecordMaker().shown();
        assertEquals(State.PASSED, passed.verdict().state());
        assertEquals(
                "gathered A exact, product bitwise equal to the unfused one, float64 bound holds"
                        + " (64 of 64 rows)",
                passed.verdict().text());
        ShownRun failed =
                new RecordMaker()
                        .verified(
                                new Verification(
                                        Promise.BITWISE,
                                        false,
                                        true,
                                        false,
                                        null,
                                        Double.POSITIVE_INFINITY,
                                        Double.POSITIVE_INFINITY,
                                        64,
                                        64,
                                        false,
                                        0))
                        .shown();
        assertEquals(State.FAILED, failed.verdict().state());
        assertTrue(failed.verdict().text().contains("gathered A differs"), "says what is wrong");
        assertEquals(
                State.PREDICTED, new RecordMaker().simulatedOn("trn2").shown().verdict().state());
    }

    @Test
    void aRunUnderWayIsNeitherRightNorWrongAndHasNoAdvice() {
        RunRecord record =
                new RecordMaker()
                        .hosts(4)
                        .algorithm("mesh-pull", "mesh-pull")
                        .verified(null)
                        .record();
        ShownRun run = RunView.underWay(record, "weft run");
        assertEquals(State.RUNNING, run.verdict().state());
        assertEquals(List.of(), run.analysis().advice());
        assertFalse(RunView.of(record, "x").analysis().advice().isEmpty(), "there would be some");
        assertEquals("weft run", run.name());
    }

    @Test
    void detailsNameTheProblemTheCutAndTheMachine() {
        ShownRun run = new RecordMaker().algorithm("ring", "auto").shown();
        assertEquals("ring (auto)", detail(run, "Algorithm"));
        assertEquals("256 rows each in chunks of 64 rows", detail(run, "Shards"));
        assertEquals("1 compute, 1 lanes", detail(run, "Workers per rank"));
        assertEquals("A fp16, B fp16, C fp32", detail(run, "Types"));
        assertEquals("3 measured after 5", detail(run, "Rounds"));
        assertEquals("Weft 0.2.0, Java 25, Linux amd64, 2 cores", detail(run, "Where"));
        ShownRun asked = new RecordMaker().algorithm("ring", "ring").shown();
        assertEquals("ring", detail(asked, "Algorithm"));
    }

    /** Records of a GPU with its peers in host memory, and of many simulated ranks, have one. */
    @Test
    void aRecordMayHaveTheSpansOfOneRankOnly() {
        ShownRun run = RunView.of(new RecordMaker().lastRankAlone(), "r.json");
        assertEquals(4, run.call().worldSize());
        assertEquals(1, run.call().ranks().size());
        // What the others sent and did is not known: nothing is made up of the rest.
        assertEquals(List.of(), run.analysis().links().links());
        assertEquals(List.of(), run.analysis().shares());
        assertEquals(List.of(), run.analysis().critical());
        assertEquals("Shown is what 1 of 4 ranks did.", run.analysis().idleText());
    }
}
