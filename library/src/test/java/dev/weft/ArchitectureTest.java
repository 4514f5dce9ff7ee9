package dev.weft;

import static com.tngtech.archunit.base.DescribedPredicate.not;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.assignableTo;
import static com.tngtech.archunit.core.domain.JavaClass.Predicates.equivalentTo;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.classes;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;
import static java.util.Map.entry;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.tngtech.archunit.core.domain.JavaClass;
import com.tngtech.archunit.core.domain.JavaClasses;
import com.tngtech.archunit.core.domain.JavaModifier;
import com.tngtech.archunit.core.importer.ClassFileImporter;
import com.tngtech.archunit.lang.ArchRule;
import dev.weft.fabric.Fabric;
import dev.weft.fabric.transport.Region;
import dev.weft.fabric.transport.Transport;
import dev.weft.op.AllGatherMatmul;
import dev.weft.plan.Algorithm;
import dev.weft.plan.PlanWriter;
import dev.weft.plan.Reduction;
import java.io.IOException;
import java.io.InputStream;
import java.lang.module.ModuleDescriptor;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Arrows between the rooms of the library point down only. A new room needs its line here. */
class ArchitectureTest {

    private static final String ROOT = "dev.weft.";

    /**
     * A package, and what it may use besides the JDK. Two dots after a name stand for the package
     * and those below it.
     */
    private static final Map<String, Set<String>> MAY_USE =
            Map.ofEntries(
                    entry(
                            "cuda..",
                            Set.of(
                                    "exec..",
                                    "op..",
                                    "trace",
                                    "search",
                                    "sim",
                                    "fabric..",
                                    "plan..",
                                    "tensor",
                                    "ffi",
                                    "files",
                                    "process")),
                    entry(
                            "exec..",
                            Set.of(
                                    "op.exec",
                                    "trace",
                                    "fabric..",
                                    "gemm",
                                    "gemm.code",
                                    "plan..",
                                    "tensor",
                                    "ffi",
                                    "process")),
                    entry(
                            "op",
                            Set.of(
                                    "op.exec",
                                    "exec..",
                                    "trace",
                                    "tune",
                                    "search",
                                    "sim",
                                    "fabric..",
                                    "gemm",
                                    "plan..",
                                    "tensor",
                                    "ffi",
                                    "files",
                                    "json",
                                    "process")),
                    entry("op.exec", Set.of("search", "fabric..", "plan..", "tensor")),
                    entry("trace", Set.of("fabric", "files", "json")),
                    entry("tune..", Set.of("sim", "fabric..", "gemm", "tensor..", "process")),
                    entry("predict..", Set.of("trace", "search", "sim", "plan..", "tensor")),
                    entry(
                            "search..",
                            Set.of(
                                    "trace",
                                    "sim",
                                    "fabric..",
                                    "plan..",
                                    "tensor",
                                    "process",
                                    "tune")),
                    entry("sim..", Set.of("trace", "plan..", "tensor", "files", "json", "process")),
                    entry("fabric", Set.of("plan", "process")),
                    entry("fabric.transport", Set.of("fabric", "plan")),
                    entry(
                            "fabric.memory",
                            Set.of(
                                    "fabric",
                                    "fabric.transport",
                                    "plan",
                                    "ffi",
                                    "files",
                                    "process")),
                    entry(
                            "fabric.mpi",
                            Set.of(
                                    "fabric",
                                    "fabric.transport",
                                    "fabric.memory",
                                    "plan",
                                    "ffi",
                                    "files",
                                    "process")),
                    entry("gemm", Set.of("gemm.code", "tensor", "ffi", "process")),
                    entry("gemm.code", Set.of("tensor", "ffi")),
                    entry("files", Set.of("process")),
                    entry("tensor", Set.of("files", "json", "process")),
                    entry("tensor.data", Set.of("tensor")),
                    entry("json", Set.of("process")),
                    entry("plan..", Set.of()),
                    entry("process", Set.of()),
                    entry("ffi", Set.of()));

    /** Packages from outside that few rooms may use. */
    private static final Map<String, String> RESERVED =
            Map.of(
                    "json", "com.fasterxml.jackson.core..",
                    "tensor", "com.fasterxml.jackson.core..",
                    "sim..", "com.fasterxml.jackson.core..",
                    "trace", "com.fasterxml.jackson.core..",
                    "gemm", "jdk.incubator.vector..");

    private static final JavaClasses LIBRARY =
            new ClassFileImporter()
                    .importUrl(
                            AllGatherMatmul.class
                                    .getProtectionDomain()
                                    .getCodeSource()
                                    .getLocation());

    static Stream<String> rooms() {
        return MAY_USE.keySet().stream().sorted();
    }

    @Test
    void everyRoomHasItsLineAndNoLineIsLeftOver() {
        Set<String> found =
                LIBRARY.stream().map(ArchitectureTest::room).collect(Collectors.toSet());
        assertEquals(new TreeSet<>(MAY_USE.keySet()), new TreeSet<>(found));
    }

    @ParameterizedTest
    @MethodSource("rooms")
    void aRoomUsesOnlyTheRoomsBelowIt(String room) {
        arrows(room, MAY_USE.get(room)).check(LIBRARY);
    }

    /**
     * Who writes plans, or asks for them. Everybody else runs, prices, proves or draws plans, and
     * does not ask which algorithm wrote one.
     */
    private static final Set<String> WRITERS =
            Set.of(
                    "dev.weft.plan.GatherWriter",
                    "dev.weft.plan.PingPongRing",
                    "dev.weft.plan.Planner",
                    "dev.weft.plan.SlicedRing",
                    "dev.weft.search.AutoChoice",
                    "dev.weft.search.AutoTrial",
                    "dev.weft.search.Device",
                    "dev.weft.search.MachinePlans",
                    "dev.weft.search.PlanSearch",
                    "dev.weft.op.AllGatherMatmulBuilder",
                    "dev.weft.op.AutoMachine",
                    "dev.weft.op.OperatorBuilder",
                    "dev.weft.op.Planning",
                    "dev.weft.cuda.op.CudaAllGatherMatmulBuilder",
                    "dev.weft.cuda.op.CudaPlanning");

    @Test
    void onlyWhoWritesPlansKnowsAlgorithms() {
        Set<String> found =
                LIBRARY.stream()
                        .filter(
                                one ->
                                        one.getDirectDependenciesFromSelf().stream()
                                                .anyMatch(
                                                        to ->
                                                                to.getTargetClass()
                                                                        .isEquivalentTo(
                                                                                Algorithm.class)))
                        .map(one -> one.getName().replaceAll("\\$.*", ""))
                        .collect(Collectors.toCollection(TreeSet::new));
        assertEquals(new TreeSet<>(WRITERS), found);
    }

    /** Who runs, prices or proves plans knows steps, not what they are for. */
    @Test
    void executorsSimulatorAndCheckerKnowNoCollective() {
        noClasses()
                .that()
                .resideInAnyPackage(
                        "dev.weft.exec..",
                        "dev.weft.cuda.exec..",
                        "dev.weft.cuda.kernel..",
                        "dev.weft.sim..",
                        "dev.weft.plan.step..")
                .should()
                .dependOnClassesThat()
                .belongToAnyOf(Algorithm.class, Reduction.class, PlanWriter.class)
                .check(LIBRARY);
    }

    /** Without this the rules could hold because they look at nothing. */
    @ParameterizedTest
    @MethodSource("usedArrows")
    void anArrowThatIsNotAllowedIsFound(String arrow) {
        String from = arrow.split(" -> ")[0];
        String to = arrow.split(" -> ")[1];
        Set<String> allButOne =
                MAY_USE.get(from).stream()
                        .filter(room -> !room.equals(to))
                        .collect(Collectors.toSet());
        assertTrue(arrows(from, allButOne).evaluate(LIBRARY).hasViolation(), arrow);
    }

    static List<String> usedArrows() {
        return List.of(
                "op -> exec..",
                "exec.. -> op.exec",
                "exec.. -> trace",
                "op -> fabric..",
                "op -> gemm",
                "op -> plan..",
                "op -> tensor",
                "op -> ffi",
                "op -> sim",
                "op -> tune",
                "fabric -> plan",
                "fabric.transport -> fabric",
                "fabric.memory -> fabric.transport",
                "fabric.memory -> ffi",
                "fabric.memory -> process",
                "fabric.mpi -> fabric.memory",
                "fabric.mpi -> files",
                "gemm -> gemm.code",
                "gemm -> ffi",
                "gemm.code -> tensor",
                "tune.. -> sim",
                "sim.. -> plan..");
    }

    /** What programs may depend on. A new type needs its place here, and a reason to be used. */
    private static final Map<String, Set<String>> EXPORTED =
            Map.of(
                    "cuda",
                    Set.of("DeviceBuffer", "DeviceMatrix", "Gpu", "GpuKernel", "GpuStream"),
                    "cuda.op",
                    Set.of(
                            "CudaAllGatherMatmul",
                            "CudaAllGatherMatmulBuilder",
                            "CudaMatmulReduce",
                            "CudaMatmulReduceBuilder",
                            "CudaOperator",
                            "CudaWeights"),
                    "fabric",
                    Set.of("Fabric", "ReplicaGroups", "FabricException", "FailureReport", "World"),
                    "op",
                    Set.of(
                            "AllGather",
                            "AllGatherMatmul",
                            "AllGatherMatmulBuilder",
                            "AllReduce",
                            "AllToAll",
                            "Epilogue",
                            "GroupedAllGatherMatmul",
                            "GroupedMatmulReduceScatter",
                            "MatmulAllReduce",
                            "MatmulBuilder",
                            "MatmulReduceBuilder",
                            "MatmulReduceScatter",
                            "Operator",
                            "OperatorBuilder",
                            "ReduceBuilder",
                            "ReduceScatter",
                            "Result",
                            "Weights"),
                    "trace",
                    Set.of("CallLog", "Timeline", "View"),
                    "plan",
                    Set.of(
                            "Algorithm",
                            "Chunk",
                            "Chunks",
                            "GatherRequest",
                            "GatherWriter",
                            "Hosts",
                            "Plan",
                            "PlanBuilder",
                            "PlanChecker",
                            "PlanException",
                            "PlanWriter",
                            "Reduction",
                            "ReductionRequest",
                            "ReductionWriter",
                            "Shards"),
                    "plan.group",
                    Set.of("Experts", "RowGroups"),
                    "plan.step",
                    Set.of(
                            "Buffer",
                            "InvalidPlanException",
                            "Part",
                            "Placement",
                            "Signal",
                            "Step",
                            "StepChecker",
                            "StepPlan",
                            "StepPlanBuilder",
                            "SumOrder",
                            "Worker"),
                    "predict",
                    Set.of("MachineModel"),
                    "tensor",
                    Set.of(
                            "BlockType",
                            "DType",
                            "Matrix",
                            "MatrixFiles",
                            "QuantizedMatrix",
                            "Routes",
                            "ScaledMatrix"));

    private static final int MOST_EXPORTED = 73;

    @Test
    void whatIsExportedIsListed() throws Exception {
        Map<String, Set<String>> found = new TreeMap<>();
        for (ModuleDescriptor.Exports exports : library().exports()) {
            String room = exports.source().replace(ROOT, "");
            if (!exports.isQualified()) {
                found.put(room, publicTypes(exports.source()));
            }
        }
        assertEquals(new TreeMap<>(EXPORTED), found);
        long count = EXPORTED.values().stream().mapToLong(Set::size).sum();
        assertTrue(count <= MOST_EXPORTED, count + " types are exported");
    }

    /** What the library's module declares. */
    static ModuleDescriptor library() throws IOException, URISyntaxException {
        Path classes =
                Path.of(
                        AllGatherMatmul.class
                                .getProtectionDomain()
                                .getCodeSource()
                                .getLocation()
                                .toURI());
        try (InputStream descriptor = Files.newInputStream(classes.resolve("module-info.class"))) {
            return ModuleDescriptor.read(descriptor);
        }
    }

    private static Set<String> publicTypes(String packageName) {
        return LIBRARY.stream()
                .filter(type -> type.getPackageName().equals(packageName))
                .filter(type -> type.isTopLevelClass())
                .filter(type -> type.getModifiers().contains(JavaModifier.PUBLIC))
                .map(JavaClass::getSimpleName)
                .collect(Collectors.toSet());
    }

    /** The most classes of a package, without those inside others, that can be surveyed. */
    private static final int MOST_IN_A_PACKAGE = 30;

    @Test
    void aPackageCanBeSurveyed() {
        Map<String, Long> sizes =
                LIBRARY.stream()
                        .filter(type -> type.getEnclosingClass().isEmpty())
                        // Maven makes such a class of every package's Javadoc.
                        .filter(type -> !type.getSimpleName().equals("package-info"))
                        .collect(
                                Collectors.groupingBy(
                                        JavaClass::getPackageName, Collectors.counting()));
        sizes.values().removeIf(size -> size <= MOST_IN_A_PACKAGE);
        assertEquals(Map.of(), sizes);
    }

    @Test
    void packagesAreFreeOfCircles() {
        slices().matching(ROOT + "(**)").should().beFreeOfCycles().check(LIBRARY);
    }

    @Test
    void planIsPure() {
        classes()
                .that()
                .resideInAPackage(ROOT + "plan..")
                .should()
                .onlyDependOnClassesThat()
                .resideInAnyPackage(
                        ROOT + "plan..",
                        "java.lang",
                        "java.lang.invoke",
                        "java.lang.runtime",
                        "java.util",
                        "java.util.function",
                        "java.util.stream")
                .because("a plan is data: no threads, no files, no memory")
                .check(LIBRARY);
        noClasses()
                .that()
                .resideInAPackage(ROOT + "plan..")
                .should()
                .dependOnClassesThat(
                        assignableTo(Thread.class)
                                .or(assignableTo(Process.class))
                                .or(assignableTo(ProcessBuilder.class)))
                .check(LIBRARY);
    }

    @Test
    void operatorsKnowNoConcreteFabric() {
        noClasses()
                .that()
                .resideInAPackage(ROOT + "op..")
                .should()
                .dependOnClassesThat(
                        assignableTo(Fabric.class)
                                .and(not(equivalentTo(Fabric.class)))
                                .and(not(equivalentTo(Transport.class)))
                                .or(
                                        assignableTo(Region.class)
                                                .and(not(equivalentTo(Region.class)))))
                .check(LIBRARY);
    }

    @Test
    void noRoomIsADrawerForOddsAndEnds() {
        noClasses()
                .should()
                .resideInAnyPackage("..util..", "..utils..", "..common..", "..misc..", "..helper..")
                .check(LIBRARY);
    }

    private static ArchRule arrows(String room, Set<String> below) {
        Stream<String> weft = Stream.concat(Stream.of(room), below.stream()).map(r -> ROOT + r);
        Stream<String> outside =
                Stream.of(RESERVED.getOrDefault(room, "java.."), "java..", "jdk.jfr..");
        return classes()
                .that()
                .resideInAPackage(ROOT + room)
                .should()
                .onlyDependOnClassesThat()
                .resideInAnyPackage(Stream.concat(weft, outside).toArray(String[]::new));
    }

    /** The line of a type's package. */
    private static String room(JavaClass type) {
        String name = type.getPackageName().replace(ROOT, "");
        return MAY_USE.containsKey(name) ? name : name.split("\\.")[0] + "..";
    }
}
