package dev.weft.cli.run;

/** Receives what a rank has measured so far, at most a few times a second. */
@FunctionalInterface
interface RoundListener {

    void round(int rank, RankReport soFar);
}
