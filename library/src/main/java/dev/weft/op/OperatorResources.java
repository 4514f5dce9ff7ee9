package dev.weft.op;

import dev.weft.fabric.transport.Region;
import java.lang.foreign.Arena;
import java.util.List;

/**
 * All memory of one rank's operator, freed together.
 *
 * @param regions memory that peers can reach
 */
record OperatorResources(Arena arena, List<Region> regions) implements AutoCloseable {

    @Override
    public void close() {
        regions.forEach(Region::close);
        arena.close();
    }
}
