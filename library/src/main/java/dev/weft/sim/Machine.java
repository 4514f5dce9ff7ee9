package dev.weft.sim;

import dev.weft.plan.Hosts;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * A model of a machine: what a rank can do, and how ranks reach each other. Files describe it (see
 * {@link MachineFile}). Immutable and thread-safe.
 *
 * @param description one line, for people to read
 * @param sources where the figures come from, one line each
 * @param overheads what every call, transfer and signal costs besides its bytes
 * @param consumption the order in which the machine's kernel takes rows
 * @param ranksPerNode ranks that {@code node} connects; more ranks use several nodes; 0 for any
 *     number
 * @param node how the ranks of a node reach each other
 * @param network how nodes reach each other; null if there is only one
 * @param copies what is known about copies besides their rate
 */
public record Machine(
        String name,
        String description,
        List<String> sources,
        Engine engine,
        Memory memory,
        Overheads overheads,
        Consumption consumption,
        int ranksPerNode,
        Wiring node,
        Wiring network,
        Copies copies) {

    public Machine {
        Objects.requireNonNull(name, "name");
        Objects.requireNonNull(engine, "engine");
        Objects.requireNonNull(node, "node");
        Objects.requireNonNull(copies, "copies");
        sources = List.copyOf(sources);
        if (ranksPerNode < 0 || ranksPerNode == 0 && network != null) {
            throw new IllegalArgumentException(
                    "%s: %s ranks per node%s: expected at least one, or none given and no network"
                            .formatted(
                                    name, ranksPerNode, network == null ? "" : " and a network"));
        }
    }

    /** Which of the rows that have arrived a kernel multiplies first. */
    public enum Consumption {
        /** As the plan says: in the order in which they are delivered. */
        AS_PLANNED,
        /** One source after the other, starting with the next rank. */
        BY_SOURCE
    }

    /**
     * Memory of one rank.
     *
     * @param gbps how fast the engine can read and write, in 10^9 bytes a second; 0 for no limit
     * @param onChipMib how much stays on the chip between two uses, in 2^20 bytes
     * @param arrivalsOnChip whether rows that arrive in two buffers stay there, and do not load the
     *     memory
     */
    public record Memory(double gbps, double onChipMib, boolean arrivalsOnChip) {

        /** Memory that arriving rows pass through. */
        public Memory(double gbps, double onChipMib) {
            this(gbps, onChipMib, false);
        }

        /** Whether a B of this size stays on the chip: if half of the on-chip memory holds it. */
        boolean keeps(double bytes) {
            return 2 * bytes <= onChipMib * (1 << 20);
        }
    }

    /**
     * @param callUs from the call until workers and lanes run
     * @param transferUs a lane's time for each transfer, besides moving the bytes
     * @param signalUs from the end of a transfer until its chunk is known at the destination
     * @param wakeUs from then on, until the waiting thread continues
     */
    public record Overheads(double callUs, double transferUs, double signalUs, double wakeUs) {

        /** From the end of a transfer until it can be used. */
        double knownNs() {
            return (signalUs + wakeUs) * 1e3;
        }
    }

    /**
     * What copies between ranks cost and slow down, for the cut of what arrives; the simulator does
     * not use it.
     *
     * @param narrowBytes rows of a rectangle that are narrower cost more than their bytes
     * @param narrowRowNs for each of them
     * @param farBytes rows that are further apart than this cost {@code farRowNs} instead
     */
    public record Copies(double narrowBytes, double narrowRowNs, double farBytes, double farRowNs) {

        /** Every byte costs the same. */
        public static final Copies PLAIN = new Copies(0, 0, 0, 0);

        public Copies {
            if (!(narrowBytes >= 0)
                    || !(narrowRowNs >= 0)
                    || !(farBytes >= 0)
                    || !(farRowNs >= 0)) {
                throw new IllegalArgumentException(
                        "rows under %s bytes %s ns, over %s apart %s ns: expected nothing negative"
                                .formatted(narrowBytes, narrowRowNs, farBytes, farRowNs));
            }
        }

        /** What a row of a rectangle costs besides its bytes, if rows are this far apart. */
        public double rowNs(long bytes, long apartBytes) {
            if (bytes >= narrowBytes) {
                return 0;
            }
            return apartBytes > farBytes ? farRowNs : narrowRowNs;
        }
    }

    /** How the ranks are placed on nodes: each node is filled, the rest are on the last. */
    public Hosts hosts(int ranks) {
        if (ranksPerNode == 0 || ranks <= ranksPerNode) {
            return Hosts.one(ranks);
        }
        if (network == null) {
            throw new IllegalArgumentException(
                    "%s ranks on %s: expected at most %s, since it has no network between nodes"
                            .formatted(ranks, name, ranksPerNode));
        }
        List<Integer> sizes = new ArrayList<>();
        for (int left = ranks; left > 0; left -= ranksPerNode) {
            sizes.add(Math.min(left, ranksPerNode));
        }
        return new Hosts(sizes);
    }

    /** A copy with links {@code factor} times as fast, within nodes and between them. */
    public Machine withLinksFaster(double factor) {
        Wiring faster = network == null ? null : network.faster(factor);
        return with(engine, memory, ranksPerNode, node.faster(factor), faster);
    }

    /** A copy with {@code factor} times the memory on the chip. */
    public Machine withMoreOnChip(double factor) {
        Memory more =
                new Memory(memory.gbps(), memory.onChipMib() * factor, memory.arrivalsOnChip());
        return with(engine, more, ranksPerNode, node, network);
    }

    /** A copy that keeps rows that arrive in two buffers on the chip. */
    public Machine withArrivalsOnChip() {
        Memory onChip = new Memory(memory.gbps(), memory.onChipMib(), true);
        return with(engine, onChip, ranksPerNode, node, network);
    }

    /** A copy with a kernel that multiplies rows in another order. */
    public Machine withConsumption(Consumption other) {
        return new Machine(
                name,
                description,
                sources,
                engine,
                memory,
                overheads,
                other,
                ranksPerNode,
                node,
                network,
                copies);
    }

    /** A copy with an engine {@code factor} times as fast. */
    public Machine withEngineFaster(double factor) {
        return withEngine(engine.faster(factor));
    }

    /** A copy with another engine. */
    public Machine withEngine(Engine other) {
        return with(other, memory, ranksPerNode, node, network);
    }

    /** A copy as one of several nodes that a network connects. */
    public Machine withNetwork(int newRanksPerNode, Wiring newNetwork) {
        return with(engine, memory, newRanksPerNode, node, newNetwork);
    }

    /**
     * A copy with the share that {@code some} of {@code all} ranks of a node have of its cores, its
     * bus, and a link to other nodes if ranks share it.
     */
    public Machine withShare(int some, int all) {
        double part = (double) some / all;
        Wiring shared = network == null || network.portPerRank() ? network : network.part(part);
        return with(
                engine instanceof CoreEngine cores ? cores.part(part) : engine,
                memory,
                ranksPerNode,
                node.topology() == Wiring.Topology.BUS ? node.part(part) : node,
                shared);
    }

    private Machine with(
            Engine newEngine, Memory newMemory, int ranks, Wiring newNode, Wiring newNetwork) {
        return new Machine(
                name,
                description,
                sources,
                newEngine,
                newMemory,
                overheads,
                consumption,
                ranks,
                newNode,
                newNetwork,
                copies);
    }
}
