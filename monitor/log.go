package monitor

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"triax/train"
)

// Logger writes a line a step: of rank 0 what the run did, and with ranks set of every rank what it did itself.
type Logger struct {
	log   *slog.Logger
	every int
	ranks bool
}

// LogFormats are the forms a Logger writes.
var LogFormats = []string{"text", "json"}

// NewLogger makes a Logger; every is the number of steps between lines.
func NewLogger(w io.Writer, format string, every int, ranks bool) (*Logger, error) {
	var h slog.Handler
	switch format {
	case "text":
		h = slog.NewTextHandler(w, nil)
	case "json":
		h = slog.NewJSONHandler(w, nil)
	default:
		return nil, fmt.Errorf("log = %q: want one of %v", format, LogFormats)
	}
	return &Logger{slog.New(h), max(1, every), ranks}, nil
}

// Step is the OnStep hook.
func (l *Logger) Step(p train.Progress) {
	if p.Step%l.every != 0 && p.Step != p.Steps && p.Eval == nil && !p.Skipped {
		return
	}
	at := []slog.Attr{
		slog.Int("step", p.Step), slog.Int("steps", p.Steps), slog.Float64("loss", p.Loss), slog.Float64("grad_norm", p.Norm), slog.Float64("lr", p.Rate),
		slog.Float64("tokens_per_s", float64(p.Tokens)/p.Took.Seconds()), slog.Duration("took", p.Took),
	}
	if p.Eval != nil {
		at = append(at, slog.Float64("held_out_loss", *p.Eval))
	}
	level := slog.LevelInfo
	if p.Skipped {
		level = slog.LevelWarn
		at = append(at, slog.String("skipped", "the gradient norm is not finite"))
	}
	l.log.LogAttrs(context.Background(), level, "step", at...)
}

// Rank is the OnRank hook.
func (l *Logger) Rank(s train.RankStep) {
	if !l.ranks || s.Step%l.every != 0 {
		return
	}
	var bytes int64
	for _, e := range s.Comm {
		bytes += e.Bytes
	}
	var held int64
	for _, u := range s.Memory {
		held += u.Now
	}
	l.log.LogAttrs(context.Background(), slog.LevelInfo, "rank",
		slog.Int("step", s.Step), slog.Int("rank", s.Rank), slog.String("place", s.Place), slog.Duration("took", s.Took), slog.Duration("busy", s.Busy),
		slog.Duration("idle", s.Idle), slog.Duration("transfer", s.Transfer), slog.Int64("comm_bytes_total", bytes), slog.Int64("memory_bytes", held))
}
