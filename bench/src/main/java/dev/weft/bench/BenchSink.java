package dev.weft.bench;

/** Takes what a case finds: prints it as it comes and keeps it for the record. */
interface BenchSink {

    void row(BenchRow row);

    /** A case or a peer that cannot be measured here, with the reason. */
    void skipped(String item, String reason);

    /** A figure of the whole machine that rows refer to, such as the peak of one core. */
    void machine(String name, double value);
}
