package dev.weft.model;

import dev.weft.plan.step.Step;
import java.util.Locale;

/** Ways to break the protocol, each of which the check must find. */
enum Mutant {
    /** The protocol as it is. */
    NONE("the protocol as it is"),
    OWN_CALL_ONLY("a call starts as soon as the rank's own call before is over"),
    REUSE_OFF_BY_ONE("a call starts once every peer has started the call two before"),
    FINISH_WORD("a call starts once every peer has finished the call two before"),
    ONE_COPY("all calls use the same copy of every buffer"),
    START_FIRST("the start word is published before A is written"),
    START_IGNORED("a peer's A is read before the peer has started the call"),
    SINGLE_EARLY("a buffer without a second copy is written before its rank has started the call"),
    COPY_SIGNALS_FIRST("a copy raises its signal before it is done"),
    PRODUCT_SIGNALS_FIRST("a product raises its signal before it is done"),
    SUM_SIGNALS_FIRST("a sum raises its signal before it is done"),
    COPY_WAITS_IGNORED("a copy does not wait for signals"),
    PRODUCT_WAITS_IGNORED("a product does not wait for signals"),
    SUM_WAITS_IGNORED("a sum does not wait for signals"),
    JOIN_WAITS_IGNORED("a join does not wait for signals"),
    VALUE_LOWERED("a step waits for one less than the value of a signal");

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

    /** Whether steps of this kind raise their signal too early. */
    boolean signalsFirst(Step step) {
        return switch (this) {
            case COPY_SIGNALS_FIRST -> step instanceof Step.Copy;
            case PRODUCT_SIGNALS_FIRST -> step instanceof Step.Multiply;
            case SUM_SIGNALS_FIRST -> step instanceof Step.Add;
            default -> false;
        };
    }

    /** Whether steps of this kind do not wait. */
    boolean ignoresWaits(Step step) {
        return switch (this) {
            case COPY_WAITS_IGNORED -> step instanceof Step.Copy;
            case PRODUCT_WAITS_IGNORED -> step instanceof Step.Multiply;
            case SUM_WAITS_IGNORED -> step instanceof Step.Add;
            case JOIN_WAITS_IGNORED -> step instanceof Step.Join;
            default -> false;
        };
    }
}
