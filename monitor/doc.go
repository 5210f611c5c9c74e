// Package monitor lets a run be watched: a Prometheus endpoint, and structured log lines.
//
//	train.Run ── OnStep ──▶ Monitor ──▶ GET /metrics     loss, rate, tokens/s, step time, held-out loss
//	          ── OnRank ──▶         ──▶                  by rank: busy, idle, transfer, bytes by axis, memory by kind
//	devices   ── Measure ─▶         ──▶                  by device: power, and the energy of a step
//
// It costs a copy of a rank's ledger a step, and nothing where it is not asked for. docs/grafana.json is a dashboard on it.
// Read next: train.RankStep.
package monitor
