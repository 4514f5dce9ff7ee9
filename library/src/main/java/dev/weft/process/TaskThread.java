package dev.weft.process;

/** A thread that runs one task after the other; reports name it after the task. */
public final class TaskThread extends Thread {

    /** What the thread runs, for itself alone. */
    private Object task;

    public TaskThread(String name, Runnable body) {
        super(body, name);
        setDaemon(true);
    }

    /** By this thread. */
    public void begins(Object next) {
        task = next;
    }

    /** What the calling thread runs or, of other threads, its name. */
    public static String currentName() {
        Thread thread = currentThread();
        return thread instanceof TaskThread own && own.task != null
                ? own.task.toString()
                : thread.getName();
    }
}
