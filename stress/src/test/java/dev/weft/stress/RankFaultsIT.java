package dev.weft.stress;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Faults in ranks that are processes, by real signals. The whole table is the command's. */
class RankFaultsIT {

    private static Ending check(String words) {
        Ending ending = Case.parse("rank=1 ranks=3 deadline=4000 " + words).execute();
        assertEquals(List.of(), ending.problems(), ending.run().words());
        return ending;
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "fault=kill phase=rendezvous",
                "fault=kill phase=last-chunk algorithm=ring",
                "fault=freeze phase=first-chunk algorithm=mesh-push",
                "fault=corrupt phase=first-chunk algorithm=ring",
                "fault=kill phase=first-chunk op=matmul-allreduce algorithm=chain",
                "fault=delay every=true calls=48"
            })
    void processes(String words) {
        Ending ending = check("launcher=processes " + words);
        assertTrue(ending.occurred() || words.contains("delay"), words);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "launcher=hosts fault=kill phase=first-chunk algorithm=ring",
                "launcher=hosts fault=kill phase=last-chunk op=matmul-allreduce algorithm=chain",
                "launcher=hosts fault=delay every=true calls=24"
            })
    void mpi(String words) {
        assumeTrue(MpirunRanks.unavailable().isEmpty(), () -> MpirunRanks.unavailable().orElse(""));
        check(words);
    }

    @Tag("long")
    @ParameterizedTest
    @EnumSource(mode = EnumSource.Mode.EXCLUDE, names = "THREADS")
    void everyPhase(Case.Launcher launcher) {
        assumeTrue(
                !launcher.isMpi() || MpirunRanks.unavailable().isEmpty(),
                () -> MpirunRanks.unavailable().orElse(""));
        for (Fault.Type kind : List.of(Fault.Type.KILL, Fault.Type.FREEZE)) {
            for (Fault.Phase phase : kind.phases()) {
                check(
                        "launcher="
                                + launcher.label()
                                + " algorithm=ring fault="
                                + kind.label()
                                + " phase="
                                + phase.label());
            }
        }
    }
}
