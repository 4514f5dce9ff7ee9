/**
 * Runs plans on CPUs. {@link dev.weft.exec.host.HostExecutor} compiles the steps of a rank ({@link
 * dev.weft.exec.host.RankSteps}), reserves its buffers and words ({@link
 * dev.weft.exec.host.StepMemory}) and gives the steps to threads: a {@link
 * dev.weft.exec.host.MoverWorker} for each lane, and {@link dev.weft.exec.host.MultiplierWorker}s,
 * which share products and additions. {@link dev.weft.exec.host.HostLanes} are the lanes alone, for
 * GPUs that send through host memory. {@link dev.weft.exec.host.Teams} lends threads and working
 * memory to one call after the other. Nothing here knows what a plan is for.
 */
package dev.weft.exec.host;
