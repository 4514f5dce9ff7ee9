package dev.weft.plan;

import java.util.List;

/** An ordered list of transfers that one communication worker executes one after the other. */
public record Lane(int index, List<Transfer> transfers) {

    public Lane {
        transfers = List.copyOf(transfers);
    }
}
