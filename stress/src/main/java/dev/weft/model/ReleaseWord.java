package dev.weft.model;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * How many remote shards a rank has released, over all calls. Several threads of the rank count
 * uses down and publish under one lock; here both are one step, since a word that is raised later
 * only makes others wait longer, which the search covers by not scheduling them.
 */
final class ReleaseWord extends Word {

    private final int firstCall;
    private final int remoteShards;

    /** By call and shard, in the order of release: the uses since the first call. */
    private final List<int[]> needed = new ArrayList<>();

    /** By thread, and by how many of its steps are done: the uses of each shard so far. */
    private final int[][][] used;

    private final int caller;

    /** By how many of the caller's steps are done: calls begun. */
    private int[] begun = {0};

    ReleaseWord(String name, int firstCall, int remoteShards, int threads, int caller) {
        super(Kind.RELEASE, name, 2 * remoteShards);
        this.firstCall = firstCall;
        this.remoteShards = remoteShards;
        this.caller = caller;
        this.used = new int[threads][1][remoteShards];
    }

    /** From {@code at} of the caller's steps on, the next call has begun, with these uses. */
    void begin(int at, int[] uses) {
        int[] sum = needed.isEmpty() ? new int[remoteShards] : needed.getLast().clone();
        for (int shard = 0; shard < remoteShards; shard++) {
            sum[shard] += uses[shard];
        }
        int filled = begun.length;
        begun = Arrays.copyOf(begun, at + 1);
        Arrays.fill(begun, filled, at, needed.size());
        needed.add(sum);
        begun[at] = needed.size();
    }

    /** From {@code at} steps on, a thread has used a shard once more. */
    void use(int thread, int at, int shard) {
        int filled = used[thread].length;
        int[] before = used[thread][filled - 1];
        used[thread] = Arrays.copyOf(used[thread], at + 1);
        Arrays.fill(used[thread], filled, at, before);
        used[thread][at] = before.clone();
        used[thread][at][shard]++;
    }

    @Override
    int value(int[] at) {
        int call = begun[Math.min(at[caller], begun.length - 1)];
        int released = 0;
        while (call > 0 && released < remoteShards && isFree(at, call, released)) {
            released++;
        }
        int calls = call == 0 ? firstCall - 1 : firstCall - 1 + call - 1;
        return calls * remoteShards + released;
    }

    private boolean isFree(int[] at, int call, int shard) {
        int uses = 0;
        for (int thread = 0; thread < used.length; thread++) {
            int[][] ofThread = used[thread];
            uses += ofThread[Math.min(at[thread], ofThread.length - 1)][shard];
        }
        return uses >= needed.get(call - 1)[shard];
    }
}
