package train

import (
	"fmt"
	"strings"

	"triax/comm"
)

// Result is what a run reports; `triax train --json` prints it.
type Result struct {
	// Loss and GradNorm have an entry a step: the mean loss over the step's valid tokens, and the norm of the whole
	// model's gradient before clipping.
	Loss     []float64 `json:"loss"`
	GradNorm []float64 `json:"grad_norm"`
	// Skipped lists the steps whose gradient norm was not finite, where nothing was updated.
	Skipped []int `json:"skipped,omitempty"`
	// Eval is the held-out loss, by step.
	Eval []Evaluation `json:"eval,omitempty"`
	// TokensPerS counts the tokens of all ranks over the median step.
	TokensPerS float64 `json:"tokens_per_s"`
	StepMS     float64 `json:"step_ms"`
	Bubble     Bubble  `json:"bubble"`
	// IdleMS and TransferMS are, by pipeline rank, the mean time a step spent waiting for a peer to make an input, and
	// moving inputs between ranks.
	IdleMS     []float64 `json:"idle_ms"`
	TransferMS []float64 `json:"transfer_ms"`
	// Comm is one training step's communication summed over all ranks, by axis and kind.
	Comm []comm.Entry `json:"comm"`
	// Memory is each rank's peak, by rank.
	Memory []Memory `json:"memory"`
	// Resident is the most memory that the process has had, all ranks of it, code and corpus included; 0 where the system does not say.
	Resident int64  `json:"resident_peak"`
	Mesh     string `json:"mesh"`
	Ranks    int    `json:"ranks"`
	Params   int64  `json:"params"`
	Tokens   int64  `json:"tokens"` // trained on
	// Resumed is the step that the run went on from; Stopped says that it ended before its last step, as it was asked to.
	Resumed int    `json:"resumed,omitempty"`
	Stopped bool   `json:"stopped,omitempty"`
	Saves   []Save `json:"checkpoints,omitempty"`
	Folder  string `json:"folder,omitempty"`
	Sample  string `json:"sample,omitempty"`
}

// Evaluation is a held-out loss after a step.
type Evaluation struct {
	Step int     `json:"step"`
	Loss float64 `json:"loss"`
}

// Bubble is the idle share of the whole step, barrier of norm and update included: 1 - busy / (ranks x step).
// Scheduled is the schedule's own, with a forward of one unit and a backward of two on every stage and free communication.
type Bubble struct {
	Measured  float64 `json:"measured"`
	Scheduled float64 `json:"scheduled"`
}

// Memory is one rank's memory in bytes, each part at its own peak.
type Memory struct {
	Rank        int   `json:"rank"`
	Parameters  int64 `json:"parameters"`
	Gradients   int64 `json:"gradients"`
	Optimizer   int64 `json:"optimizer"`
	Offloaded   int64 `json:"offloaded,omitempty"` // optimizer state in files
	Activations int64 `json:"activations_peak"`
	Workspace   int64 `json:"workspace_peak"`
	Buffers     int64 `json:"buffers_peak"`
	Inputs      int64 `json:"inputs"`
	Peak        int64 `json:"peak"` // of the sum
}

// String is the summary that ends a run on the terminal.
func (r *Result) String() string {
	var b strings.Builder
	if n := len(r.Loss); n > 0 {
		fmt.Fprintf(&b, "loss %.4f → %.4f over %d steps", r.Loss[0], r.Loss[n-1], n)
	}
	if n := len(r.Eval); n > 0 {
		fmt.Fprintf(&b, ", held out %.4f", r.Eval[n-1].Loss)
	}
	fmt.Fprintf(&b, "\n%s, %d parameters; median step %.1f ms, %.0f tokens/s", r.Mesh, r.Params, r.StepMS, r.TokensPerS)
	if len(r.IdleMS) > 1 {
		fmt.Fprintf(&b, "; bubble %.1f%% measured, %.1f%% scheduled", 100*r.Bubble.Measured, 100*r.Bubble.Scheduled)
	}
	for _, e := range r.Comm {
		if e.Kind != comm.KindRecv {
			fmt.Fprintf(&b, "\n  %-12s %-14s %6d calls  %12d bytes a step", e.Axis, e.Kind, e.Calls, e.Bytes)
		}
	}
	if len(r.Skipped) > 0 {
		fmt.Fprintf(&b, "\nskipped steps (gradient norm not finite): %v", r.Skipped)
	}
	if n := len(r.Saves); n > 0 {
		s := r.Saves[n-1]
		fmt.Fprintf(&b, "\nsaved step %d: %d bytes, training waited %.1f ms, written after %.1f ms", s.Step, s.Bytes, s.PauseMS, s.WriteMS)
	}
	if r.Folder != "" {
		fmt.Fprintf(&b, "\nwritten to %s", r.Folder)
	}
	return b.String()
}
