package dev.weft.fabric.memory;

import java.io.IOException;

/** A process that starts a job, says where, and waits for the end of its input. */
final class JobChild {

    private JobChild() {}

    public static void main(String[] args) throws IOException {
        ShmJob job = ShmJob.create();
        System.out.println("folder " + job.folder());
        if (args.length > 0 && args[0].equals("close")) {
            job.close();
            return;
        }
        while (System.in.read() >= 0) {
            // waits
        }
        Runtime.getRuntime().halt(0);
    }
}
