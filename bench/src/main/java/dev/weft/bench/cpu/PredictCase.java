package dev.weft.bench.cpu;

import dev.weft.bench.cpu.PredictSummary.Prediction;
import dev.weft.bench.measure.BenchCase;
import dev.weft.bench.measure.BenchRow;
import dev.weft.bench.measure.Interleaved;
import dev.weft.fabric.World;
import dev.weft.gemm.Gemms;
import dev.weft.sim.Machine;
import dev.weft.sim.Scenario;
import dev.weft.sim.SimulatedView;
import dev.weft.sim.Simulator;
import dev.weft.tune.Calibration;
import dev.weft.tune.Effort;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/**
 * What the simulator says that a call takes on this machine, beside what it takes: ranks as threads
 * of this JVM, overlapped and sequential. The machine is measured anew for every run, in turn with
 * its calls, since its speed changes within seconds; the prediction knows nothing of the calls.
 */
final class PredictCase implements BenchCase {

    private static final int QUICK_RUNS = 2;
    private static final int SLICES = 9;
    private static final int QUICK_SLICES = 2;

    private final String item;
    private final List<PredictRun> runs;
    private final Function<Runnable, Effort> calibration;

    /**
     * @param calibration how long to measure the machine, given a heartbeat; a quick bench is quick
     */
    private PredictCase(
            String item, List<PredictRun> runs, Function<Runnable, Effort> calibration) {
        this.item = item;
        this.runs = runs;
        this.calibration = calibration;
    }

    /** Calls that gather. */
    static PredictCase gathers(Function<Runnable, Effort> calibration) {
        return new PredictCase("predict", PredictRun.gathered(), calibration);
    }

    /** Calls whose products are summed over ranks. */
    static PredictCase sums(Function<Runnable, Effort> calibration) {
        return new PredictCase("predict-sums", PredictRun.summed(), calibration);
    }

    @Override
    public String item() {
        return item;
    }

    @Override
    public void run(Settings settings, Sink sink) {
        List<Prediction> pipelined = new ArrayList<>();
        List<Prediction> sequential = new ArrayList<>();
        for (PredictRun run : settings.quick() ? runs.subList(0, QUICK_RUNS) : runs) {
            Machine machine;
            PredictMeasurement measured;
            try (Calibration current =
                    new Calibration(
                            type -> Gemms.auto(type, type),
                            EnumSet.of(run.dtype()),
                            effort(settings.quick()))) {
                measured = measure(run, current, settings.quick());
                machine = current.machine();
            }
            String name = run.describe();
            pipelined.add(row(sink, name, machine, measured, PredictMeasurement.PIPELINED));
            sequential.add(
                    row(
                            sink,
                            name + ", sequential",
                            machine,
                            measured,
                            PredictMeasurement.SEQUENTIAL));
        }
        summary(sink, "overlapped", new PredictSummary(pipelined));
        summary(sink, "sequential", new PredictSummary(sequential));
    }

    private Effort effort(boolean quick) {
        Runnable nobodyWaits = () -> {};
        return quick ? Effort.quick(nobodyWaits) : calibration.apply(nobodyWaits);
    }

    private static PredictMeasurement measure(
            PredictRun run, Calibration calibration, boolean quick) {
        int slices = quick ? QUICK_SLICES : SLICES;
        try (World world = World.threads(run.ranks())) {
            return world.call(
                            fabric ->
                                    PredictMeasurement.of(
                                            fabric,
                                            run,
                                            calibration,
                                            Interleaved.Effort.of(true),
                                            slices))
                    .getFirst();
        }
    }

    private Prediction row(
            Sink sink, String name, Machine machine, PredictMeasurement measured, int which) {
        Scenario scenario =
                which == PredictMeasurement.PIPELINED
                        ? measured.pipelined()
                        : measured.sequential();
        Interleaved.Outcome outcome = measured.outcome();
        Prediction prediction =
                new Prediction(
                        Simulator.run(machine, scenario, SimulatedView.PIPELINED).ns(),
                        outcome.medianNs(which),
                        measured.gatherOverProduct());
        Map<String, Double> figures = new LinkedHashMap<>();
        figures.put("predictedNs", prediction.predictedNs());
        figures.put("measuredNs", prediction.measuredNs());
        figures.put("measuredSpreadNs", outcome.spreadNs(which));
        figures.put("error", prediction.error());
        figures.put("gatherOverProduct", prediction.gatherOverProduct());
        figures.put("counted", prediction.counts() ? 1.0 : 0.0);
        figures.put("rounds", (double) outcome.rounds());
        String peer = prediction.counts() ? "predicted" : "predicted (not counted)";
        double ratio = prediction.predictedNs() / prediction.measuredNs();
        sink.row(new BenchRow(item, name, peer, ratio, figures));
        return prediction;
    }

    private void summary(Sink sink, String which, PredictSummary summary) {
        if (summary.isEmpty()) {
            sink.skipped(item, "errors of " + which + " runs: none has enough to gather");
            return;
        }
        sink.row(
                new BenchRow(
                        item,
                        "all " + which + " runs that count",
                        "predicted, in all",
                        summary.ratio(),
                        summary.figures()));
    }
}
