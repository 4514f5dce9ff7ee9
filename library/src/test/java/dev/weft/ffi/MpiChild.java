package dev.weft.ffi;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Arrays;
import java.util.Locale;
import java.util.OptionalInt;
import java.util.function.Supplier;

/**
 * One rank of {@link MpiIT}: goes through all checks together with its peers and tells each that it
 * has passed. A failed check ends all ranks with its stack trace.
 */
public final class MpiChild {

    private static final int PATIENCE_SECONDS = 60;

    private final Mpi mpi;
    private final Arena arena = Arena.global();
    private int rank;
    private int size;
    private long comm;
    private MpiRequests requests;

    private MpiChild(Mpi mpi) {
        this.mpi = mpi;
    }

    public static void main(String[] args) {
        if (Mpi.unavailable().isPresent()) {
            System.out.println("unavailable: " + Mpi.unavailable().get());
            return;
        }
        Mpi mpi = Mpi.load();
        try {
            new MpiChild(mpi).run();
        } catch (Throwable e) {
            e.printStackTrace();
            System.err.flush();
            // Without MPI_Finalize, so that the launcher ends the other ranks too.
            Runtime.getRuntime().halt(1);
        }
    }

    private void run() throws Throwable {
        initialises();
        splitsAndDuplicates();
        sendsBytesAroundTheRing(64);
        sendsBytesAroundTheRing(4 << 20);
        sendsRowsAtOnePitchAndReceivesThemAtAnother();
        completesOutOfOrder();
        gathersUnevenly();
        gathersAndBroadcasts();
        tellsATruncatedMessage();
        tellsABadArgument();
        cancelsAReceive();
        allocatesNothing();
        leavesSignalsToTheJvm();
        finishes();
    }

    private void initialises() {
        expect(!mpi.initialized(), "initialised before its time");
        MpiThreadLevel provided = mpi.initThread(MpiThreadLevel.MULTIPLE);
        expect(mpi.initialized() && !mpi.finalized(), "not initialised");
        expect(provided == mpi.queryThread(), provided + " and then " + mpi.queryThread());
        rank = mpi.rank(mpi.world());
        size = mpi.size(mpi.world());
        MpiEnvironment told = MpiEnvironment.current();
        expect(told.family().orElseThrow() == mpi.family(), told + " but " + mpi.family());
        expect(told.rank().equals(OptionalInt.of(rank)), told + " but rank " + rank);
        expect(told.size().equals(OptionalInt.of(size)), told + " but size " + size);
        if (rank == 0) {
            System.out.println("library: " + mpi.libraryVersion());
            System.out.println("threads: " + provided);
        }
        requests = mpi.requests(8);
        passed("init");
    }

    private void splitsAndDuplicates() {
        comm = mpi.duplicate(mpi.world());
        mpi.returnErrors(comm);
        expect(mpi.rank(comm) == rank && mpi.size(comm) == size, "a duplicate differs");
        long host = mpi.splitByHost(comm, size - rank);
        expect(mpi.size(host) == size, "this host has " + mpi.size(host));
        expect(mpi.rank(host) == size - 1 - rank, "rank " + mpi.rank(host) + " by key");
        mpi.free(host);
        passed("split");
    }

    private void sendsBytesAroundTheRing(int bytes) {
        MemorySegment out = filled(bytes, rank);
        MemorySegment in = arena.allocate(bytes + 1L);
        requests.irecv(0, in.address(), bytes + 1, mpi.byteType(), before(), 5, comm);
        expect(!requests.isFree(0) && requests.isFree(1), "request 0 alone is taken");
        try {
            requests.irecv(0, in.address(), bytes, mpi.byteType(), before(), 6, comm);
            throw new AssertionError("a request was taken twice");
        } catch (IllegalArgumentException expected) {
            expect(expected.getMessage().contains("request 0"), expected.getMessage());
        }
        requests.isend(3, out.address(), bytes, mpi.byteType(), after(), 5, comm);
        int done = 0;
        while (done < 2) {
            int found = awaitSome();
            for (int i = 0; i < found; i++) {
                expect(requests.error(i) == 0, "error " + requests.error(i));
                if (requests.completed(i) == 0) {
                    expect(requests.received(i) == bytes, "got " + requests.received(i));
                }
            }
            done += found;
        }
        expect(requests.isFree(0) && requests.isFree(3), "requests stay taken");
        expect(requests.testSome() == 0, "nothing is under way");
        same(filled(bytes, before()), in.asSlice(0, bytes));
        passed("ring " + bytes);
    }

    private void sendsRowsAtOnePitchAndReceivesThemAtAnother() {
        int rows = 5;
        int rowBytes = 12;
        MemorySegment out = filled(rows * 16, rank);
        MemorySegment in = arena.allocate(rows * 20L);
        long sent = mpi.hvectorType(rows, rowBytes, 16);
        long received = mpi.hvectorType(rows, rowBytes, 20);
        requests.irecv(0, in.address(), 1, received, before(), 7, comm);
        requests.isend(1, out.address(), 1, sent, after(), 7, comm);
        mpi.freeType(sent);
        mpi.freeType(received);
        awaitAll(2);
        MemorySegment theirs = filled(rows * 16, before());
        MemorySegment expected = arena.allocate(rows * 20L);
        for (int row = 0; row < rows; row++) {
            MemorySegment.copy(theirs, row * 16L, expected, row * 20L, rowBytes);
        }
        same(expected, in);
        long block = mpi.contiguousType(rowBytes);
        requests.irecv(0, in.address(), 2, block, before(), 8, comm);
        requests.isend(1, out.address(), 2, block, after(), 8, comm);
        awaitAll(2);
        mpi.freeType(block);
        same(theirs.asSlice(0, 2 * rowBytes), in.asSlice(0, 2 * rowBytes));
        passed("types");
    }

    /** Rank 1 sends the last of three first, and the others only once that has been seen. */
    private void completesOutOfOrder() {
        MemorySegment cells = arena.allocate(4);
        if (rank == 0) {
            for (int tag = 0; tag < 3; tag++) {
                requests.irecv(tag, cells.address() + tag, 1, mpi.byteType(), 1, tag, comm);
            }
            expect(awaitSome() == 1 && requests.completed(0) == 2, "tag 2 was to come first");
            requests.isend(5, cells.address() + 3, 1, mpi.byteType(), 1, 3, comm);
            awaitAll(3);
            same(MemorySegment.ofArray(new byte[] {1, 2, 3}), cells.asSlice(0, 3));
        } else if (rank == 1) {
            MemorySegment.copy(new byte[] {1, 2, 3}, 0, cells, JAVA_BYTE, 0, 3);
            requests.isend(2, cells.address() + 2, 1, mpi.byteType(), 0, 2, comm);
            requests.irecv(3, cells.address() + 3, 1, mpi.byteType(), 0, 3, comm);
            awaitAll(2);
            requests.isend(1, cells.address() + 1, 1, mpi.byteType(), 0, 1, comm);
            requests.isend(0, cells.address(), 1, mpi.byteType(), 0, 0, comm);
            awaitAll(2);
        }
        mpi.barrier(comm);
        passed("order");
    }

    /** Rank 1 has nothing to send. */
    private void gathersUnevenly() {
        int[] counts = {3, 0, 5};
        int[] places = {1, 4, 4};
        MemorySegment in = arena.allocate(10);
        mpi.allgatherv(
                filled(5, rank).address(),
                counts[rank],
                mpi.byteType(),
                in.address(),
                arena.allocateFrom(JAVA_INT, counts).address(),
                arena.allocateFrom(JAVA_INT, places).address(),
                mpi.byteType(),
                comm);
        MemorySegment expected = arena.allocate(10);
        for (int from = 0; from < size; from++) {
            MemorySegment.copy(filled(5, from), 0, expected, places[from], counts[from]);
        }
        same(expected, in);
        passed("allgatherv");
    }

    private void gathersAndBroadcasts() {
        MemorySegment in = arena.allocate(6);
        mpi.allgather(filled(2, rank).address(), 2, in.address(), comm);
        MemorySegment expected = arena.allocate(6);
        for (int from = 0; from < size; from++) {
            MemorySegment.copy(filled(2, from), 0, expected, 2L * from, 2);
        }
        same(expected, in);
        MemorySegment news = filled(4, rank);
        mpi.bcast(news.address(), 4, mpi.byteType(), 2, comm);
        same(filled(4, 2), news);
        passed("collectives");
    }

    /** A good message arrives beside it and is none the worse for it. */
    private void tellsATruncatedMessage() {
        if (rank == 0) {
            MemorySegment in = arena.allocate(64);
            requests.irecv(1, in.address(), 8, mpi.byteType(), 1, 1, comm);
            requests.irecv(2, in.address() + 8, 16, mpi.byteType(), 1, 2, comm);
            int[] errors = {-1, -1, -1};
            for (int done = 0; done < 2; ) {
                int found = awaitSome();
                for (int i = 0; i < found; i++) {
                    errors[requests.completed(i)] = requests.error(i);
                }
                done += found;
            }
            String text = mpi.errorText(errors[1]);
            expect(errors[1] != 0, "the message of 64 bytes fitted into 8");
            expect(text.toLowerCase(Locale.ROOT).contains("truncate"), errors[1] + ": " + text);
            expect(errors[2] == 0, "error " + errors[2] + " for a message that fits");
            expect(requests.isFree(1) && requests.isFree(2), "requests stay taken");
            same(filled(16, 1), in.asSlice(8, 16));
            System.out.println("truncated: " + errors[1] + " " + text);
        } else if (rank == 1) {
            requests.isend(0, filled(64, 1).address(), 64, mpi.byteType(), 0, 1, comm);
            requests.isend(1, filled(16, 1).address(), 16, mpi.byteType(), 0, 2, comm);
            awaitAll(2);
        }
        mpi.barrier(comm);
        passed("truncation");
    }

    private void tellsABadArgument() {
        try {
            requests.isend(4, filled(1, 0).address(), 1, mpi.byteType(), 99, 1, comm);
            throw new AssertionError("rank 99 got a message");
        } catch (NativeCallException e) {
            expect(e.getMessage().contains("MPI_Isend("), e.getMessage());
            expect(e.getMessage().contains("peer 99, tag 1"), e.getMessage());
            expect(e.getMessage().lines().count() == 1, e.getMessage());
            if (rank == 0) {
                System.out.println("refused: " + e.getMessage());
            }
        }
        expect(requests.isFree(4), "a request is taken by a send that failed");
        passed("bad argument");
    }

    private void cancelsAReceive() {
        MemorySegment in = arena.allocate(8);
        requests.irecv(6, in.address(), 8, mpi.byteType(), before(), 77, comm);
        requests.cancel(6);
        expect(awaitSome() == 1 && requests.completed(0) == 6, "request 6 was cancelled");
        expect(requests.isFree(6), "request 6 goes on");
        requests.irecv(6, in.address(), 8, mpi.byteType(), before(), 78, comm);
        requests.cancel(6);
        requests.free(6);
        expect(requests.isFree(6), "request 6 is not free");
        passed("cancel");
    }

    /** Compilation takes its time: the allocation must come to an end on all ranks at once. */
    private void allocatesNothing() throws Throwable {
        MethodHandle allocated = allocatedBytes();
        MemorySegment memory = filled(128, rank);
        MemorySegment all = arena.allocate(JAVA_LONG, size);
        MemorySegment mine = arena.allocate(JAVA_LONG);
        long most = -1;
        for (int attempt = 0; attempt < 30 && most != 0; attempt++) {
            long before = (long) allocated.invokeExact();
            exchange(memory, 500);
            mine.set(JAVA_LONG, 0, (long) allocated.invokeExact() - before);
            mpi.allgather(mine.address(), Long.BYTES, all.address(), comm);
            most = Arrays.stream(all.toArray(JAVA_LONG)).max().orElseThrow();
        }
        expect(most == 0, most + " bytes allocated in 500 exchanges");
        passed("allocation");
    }

    /** Looked up by name, because the module under test does not read the management modules. */
    private static MethodHandle allocatedBytes() throws Throwable {
        MethodHandles.Lookup lookup = MethodHandles.publicLookup();
        Class<?> plain = Class.forName("java.lang.management.ThreadMXBean");
        Class<?> bean = Class.forName("com.sun.management.ThreadMXBean");
        Class<?> factory = Class.forName("java.lang.management.ManagementFactory");
        Object threads =
                lookup.findStatic(factory, "getThreadMXBean", MethodType.methodType(plain))
                        .invoke();
        String name = "getCurrentThreadAllocatedBytes";
        return lookup.findVirtual(bean, name, MethodType.methodType(long.class)).bindTo(threads);
    }

    private void exchange(MemorySegment memory, int times) {
        for (int time = 0; time < times; time++) {
            requests.irecv(0, memory.address(), 64, mpi.byteType(), before(), 9, comm);
            requests.isend(1, memory.address() + 64, 64, mpi.byteType(), after(), 9, comm);
            long bytes = 0;
            for (int done = 0; done < 2; ) {
                int found = requests.testSome();
                for (int i = 0; i < found; i++) {
                    bytes += requests.completed(i) == 0 ? requests.received(i) : 0;
                    bytes += requests.error(i);
                }
                done += found;
                if (found == 0) {
                    Thread.yield();
                }
            }
            expect(bytes == 64, "not 64 bytes");
        }
    }

    /** Compiled code leaves null to the processor, and the end of the stack as well. */
    private void leavesSignalsToTheJvm() {
        int[] box = {1};
        int sum = 0;
        for (int i = 0; i < 200_000; i++) {
            sum += read(box);
        }
        expect(sum == 200_000, "sum " + sum);
        int caught = 0;
        for (int i = 0; i < 1000; i++) {
            try {
                sum += read(null);
            } catch (NullPointerException e) {
                caught++;
            }
        }
        expect(caught == 1000, caught + " null pointers");
        try {
            sum += deep(0);
            throw new AssertionError("a stack without end: " + sum);
        } catch (StackOverflowError expected) {
            passed("signals");
        }
    }

    private static int read(int[] box) {
        return box[0];
    }

    private static int deep(int depth) {
        return deep(depth + 1) + depth;
    }

    private void finishes() {
        mpi.free(comm);
        requests.close();
        mpi.finish();
        expect(mpi.finalized(), "not finalised");
        passed("finish");
    }

    private int before() {
        return (rank + size - 1) % size;
    }

    private int after() {
        return (rank + 1) % size;
    }

    private int awaitSome() {
        long start = System.nanoTime();
        int found = requests.testSome();
        while (found == 0) {
            expect(System.nanoTime() - start < PATIENCE_SECONDS * 1_000_000_000L, "nothing comes");
            Thread.yield();
            found = requests.testSome();
        }
        return found;
    }

    private void awaitAll(int count) {
        for (int done = 0; done < count; ) {
            int found = awaitSome();
            for (int i = 0; i < found; i++) {
                expect(requests.error(i) == 0, "error " + requests.error(i));
            }
            done += found;
        }
    }

    private MemorySegment filled(int bytes, int seed) {
        MemorySegment memory = arena.allocate(bytes);
        for (int i = 0; i < bytes; i++) {
            memory.set(JAVA_BYTE, i, (byte) (i * 7 + seed * 31 + 1));
        }
        return memory;
    }

    private static void same(MemorySegment expected, MemorySegment actual) {
        long at = expected.mismatch(actual);
        expect(
                at < 0,
                () ->
                        "differs at byte "
                                + at
                                + ": "
                                + Arrays.toString(head(actual))
                                + " for "
                                + Arrays.toString(head(expected)));
    }

    private static byte[] head(MemorySegment memory) {
        return memory.asSlice(0, Math.min(100, memory.byteSize())).toArray(JAVA_BYTE);
    }

    private static void expect(boolean condition, String otherwise) {
        if (!condition) {
            throw new AssertionError(otherwise);
        }
    }

    private static void expect(boolean condition, Supplier<String> otherwise) {
        if (!condition) {
            throw new AssertionError(otherwise.get());
        }
    }

    private void passed(String check) {
        System.out.println("rank " + rank + " passed " + check);
    }
}
