package dev.weft.plan;

import java.util.List;

/**
 * What one lane brings to one rank, in delivery order.
 *
 * @param lane index of the lane in the plan of the rank that initiates it
 * @param rowsBefore rows that the lane carries to other ranks before its first hop to this one
 */
record Delivery(int lane, long rowsBefore, List<Hop> hops) {}
