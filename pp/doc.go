// Package pp cuts a model across: each pipeline rank holds some stages and walks its line of a schedule.
//
// A Stage computes; a Runner walks the ops of schedule.Schedule, fetches what an op needs, and hands on what it
// made. Nothing here decides an order: it is all in the schedule, which the planner walks on a clock.
//
//	rank 0  ─F0─F1──────────B0─…      activations go down, one message a microbatch and boundary,
//	          ╲  ╲          ╱         gradients come back; both ends on one rank pass a pointer
//	rank 1     F0─B0─F1─B1─
//
// Cost: at each boundary between ranks T·D elements forward and as many backward for every microbatch, and the
// idle time that the schedule's drawing shows. Sends never wait for the receiver, so a schedule without a cycle
// of needs cannot hang, however small the transport's buffers. Read next: package schedule, package zero.
package pp
