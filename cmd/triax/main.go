// Command triax trains transformers cut over ranks, and says on paper what a cut costs.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"triax/configs"
	"triax/data"
)

// Exit codes: 0 done, 1 failed while running, 2 the request was wrong and nothing was written, 3 a run was asked to stop by a signal and has saved,
// 130 interrupted.
const (
	exitFailed      = 1
	exitRequest     = 2
	exitStopped     = 3
	exitInterrupted = 130
)

func main() {
	err := root().ExecuteContext(context.Background())
	if err == nil {
		return
	}
	if !errors.As(err, new(silentError)) {
		fmt.Fprintln(os.Stderr, "triax:", err)
	}
	os.Exit(exitCode(err))
}

// requestError marks an error of the command line itself.
type requestError struct{ error }

func (e requestError) Unwrap() error { return e.error }

func exitCode(err error) int {
	var (
		config  configs.Problems
		corpus  data.Problems
		request requestError

		launched launchError
	)
	switch {
	case errors.As(err, new(stoppedError)):
		return exitStopped
	case errors.As(err, &launched):
		return max(exitFailed, launched.ended.Code)
	case errors.As(err, &config), errors.As(err, &corpus), errors.As(err, &request), strings.HasPrefix(err.Error(), "unknown command"):
		return exitRequest
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitFailed
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "triax",
		Short: "Hybrid-parallel training of transformers: run a cut, or price it on paper",
		Long: `triax trains transformers cut over tensor, pipeline and data axes, with ZeRO on the data
axis. Ranks are goroutines by default, so every cut runs on a laptop.`,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			if cmd.Name() == "train" || cmd.Name() == "resume" { // they save first
				return
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			context.AfterFunc(ctx, stop) // the second signal ends the process
			cmd.SetContext(ctx)
		},
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return requestError{err} })
	cmd.AddCommand(trainCmd(), resumeCmd(), launchCmd(), doctorCmd(), inspectCmd(), importCmd(), exportCmd(), evalCmd(), sampleCmd(), drawCmd(), planCmd(), compareCmd(), searchCmd(), reportCmd(), serveCmd(), validateCmd(), calibrateCmd(), benchCmd(), importConfigCmd(), exportConfigCmd())
	return cmd
}

// exactly is cobra.ExactArgs with the exit code of a wrong request.
func exactly(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := cobra.ExactArgs(n)(cmd, args); err != nil {
			return requestError{fmt.Errorf("%w\nusage: %s", err, cmd.UseLine())}
		}
		return nil
	}
}
