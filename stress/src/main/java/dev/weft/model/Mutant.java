package dev.weft.model;

import java.util.Locale;

/** Ways to break the protocol, each of which the check must find. */
enum Mutant {
    /** The protocol as it is. */
    NONE("the protocol as it is"),
    OWN_CALL_ONLY("a call starts as soon as the rank's own call before is over"),
    REUSE_OFF_BY_ONE("a call starts once every peer has started the call two before"),
    FINISH_WORD("a call starts once every peer has finished the call two before"),
    ONE_SLOT("all calls use the same slot"),
    START_FIRST("the start word is published before the shard is written"),
    FLAG_FIRST("the flag is raised before the chunk is copied"),
    COUNTER_FIRST("rows are taken by a counter that is raised before the chunk is copied"),
    NEED_IGNORED("a lane does not wait for what a transfer needs"),
    CREDIT_IGNORED("a lane does not wait for a free ping-pong buffer"),
    CREDIT_OFF_BY_ONE("a lane waits for one released shard less"),
    RELEASE_EARLY("a ping-pong buffer is released before its shard is multiplied"),
    MULTIPLIED_FIRST("a chunk counts as multiplied before its product is done"),
    PARTIAL_IGNORED("a product does not wait for the sums that it goes on from"),
    SUMMED_FIRST("sums count as whole before all ranks' are added"),
    WHOLE_IGNORED("rows are finished before their whole sums have come"),
    PARTS_IGNORED("ranks' sums are added before they have come"),
    START_IGNORED("rows are multiplied in place before their A is there");

    private final String meaning;

    Mutant(String meaning) {
        this.meaning = meaning;
    }

    String meaning() {
        return meaning;
    }

    String label() {
        return name().toLowerCase(Locale.ROOT).replace('_', '-');
    }
}
