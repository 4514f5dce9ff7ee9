package dev.weft.exec.host;

import dev.weft.fabric.transport.Transport;
import java.util.ArrayList;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * The teams of a rank. Its operators use the same one in turns: its threads are then still awake
 * when the next call begins, and its working memory is still in the caches. Calls that are under
 * way at once use different ones.
 *
 * <p>Memory order: what a call wrote into a team's memory is visible to the next call that takes
 * the team (the lock of this object).
 */
public final class Teams {

    /** Those that operators share. Guarded by itself. */
    private static final Map<Transport, Teams> SHARED = new IdentityHashMap<>();

    private final Transport fabric;
    private final Consumer<Runnable> first;
    private final List<Team> idle = new ArrayList<>();

    /** How many operators use them. Guarded by the lock of all. */
    private int operators = 1;

    private Teams(Transport fabric, Consumer<Runnable> first) {
        this.fabric = fabric;
        this.first = first;
    }

    /** Those of a rank, for one more operator. */
    public static Teams join(Transport fabric) {
        synchronized (SHARED) {
            Teams teams = SHARED.get(fabric);
            if (teams == null) {
                teams = new Teams(fabric, task -> {});
                SHARED.put(fabric, teams);
            } else {
                teams.operators++;
            }
            return teams;
        }
    }

    /**
     * Those of one operator alone.
     *
     * @param first what a thread does once, before its first task
     */
    static Teams alone(Transport fabric, Consumer<Runnable> first) {
        return new Teams(fabric, first);
    }

    /** A team that nobody else uses until it is given back, with so many threads. */
    public Team take(int threads) {
        Team team = idle();
        try {
            team.reserve(threads);
            return team;
        } catch (Throwable e) {
            // The system is out of threads.
            giveBack(team);
            throw e;
        }
    }

    private synchronized Team idle() {
        return idle.isEmpty()
                ? new Team("weft-" + fabric.worldRank(fabric.rank()), first)
                : idle.removeLast();
    }

    /** The next call gets the team that worked last. */
    public synchronized void giveBack(Team team) {
        idle.add(team);
    }

    /** An operator has ended; the last one stops the threads. */
    public void leave() {
        synchronized (SHARED) {
            if (--operators > 0) {
                return;
            }
            SHARED.remove(fabric, this);
        }
        idle.forEach(Team::close);
    }
}
