package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"triax/monitor"
	"triax/train"
)

// watch is how a run can be followed beside its progress line: log lines in its place, and an endpoint.
type watch struct {
	metrics, log string
	ranks        bool
}

func (w *watch) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&w.metrics, "metrics", "", "answer Prometheus at this address under /metrics, for example 127.0.0.1:9464")
	cmd.Flags().StringVar(&w.log, "log", "", "structured lines in place of progress: text or json")
	cmd.Flags().BoolVar(&w.ranks, "log-ranks", false, "with --log, a line a step of every rank too")
}

// attach gives a run the hooks that were asked for, and returns what ends the display.
func (w *watch) attach(ctx context.Context, out io.Writer, every int, opts *train.Options) (end func(), err error) {
	show := newProgress(out, every)
	onStep, onRank := []func(train.Progress){show.step}, []func(train.RankStep){}
	if w.ranks && w.log == "" {
		return nil, requestError{errors.New("--log-ranks: only structured lines have ranks; add --log text")}
	}
	if w.log != "" {
		l, err := monitor.NewLogger(out, w.log, every, w.ranks)
		if err != nil {
			return nil, requestError{fmt.Errorf("--%w", err)}
		}
		onStep = []func(train.Progress){l.Step}
		if w.ranks {
			onRank = append(onRank, l.Rank)
		}
	}
	if w.metrics != "" {
		m := monitor.New()
		read, err := deviceUsage()
		if err != nil {
			fmt.Fprintf(out, "no metrics of power and energy: %v\n", err)
		}
		if read != nil {
			m.Measure(read)
		}
		where, err := m.Serve(ctx, w.metrics)
		if err != nil {
			return nil, requestError{err}
		}
		fmt.Fprintf(out, "metrics at http://%s/metrics\n", where)
		onStep, onRank = append(onStep, m.Step), append(onRank, m.Rank)
	}
	opts.OnStep = func(p train.Progress) {
		for _, f := range onStep {
			f(p)
		}
	}
	if len(onRank) > 0 {
		opts.OnRank = func(s train.RankStep) {
			for _, f := range onRank {
				f(s)
			}
		}
	}
	return show.end, nil
}
