package configs

import (
	"triax/data"
	"triax/mesh"
	"triax/nn"
	"triax/optim"
	"triax/schedule"
	"triax/zero"
)

// Config is everything a run depends on. Each section's struct belongs to the room that reads it.
type Config struct {
	Model    nn.Config       `toml:"model"`
	Data     data.Config     `toml:"data"`
	Mesh     MeshConfig      `toml:"mesh"`
	Pipeline schedule.Config `toml:"pipeline"`
	Zero     zero.Config     `toml:"zero"`
	Optim    optim.Config    `toml:"optim"`
	Train    TrainConfig     `toml:"train"`
	CPU      CPUConfig       `toml:"cpu"`

	Checkpoint CheckpointConfig `toml:"checkpoint"`
	Cluster    map[string]any   `toml:"cluster,omitempty"` // read by the planner
}

// MeshConfig is the [mesh] section: the degree of every axis and their order.
type MeshConfig struct {
	Axes             []string `toml:"axes"` // slowest first; the last gets the fastest links
	DP               int      `toml:"dp"`
	PP               int      `toml:"pp"`
	TP               int      `toml:"tp"`
	EP               int      `toml:"ep"` // experts over ranks that also see different samples
	CP               int      `toml:"cp"`
	Replicate        int      `toml:"dp_replicate"`
	SequenceParallel bool     `toml:"sequence_parallel"` // tensor peers also share out the tokens between layers
	TPOverlap        bool     `toml:"tp_overlap"`        // sums of input gradients beside weight gradients; results are bit-equal with it off
}

// TrainConfig is the [train] section: the loop.
type TrainConfig struct {
	Steps        int     `toml:"steps"`
	Batch        int     `toml:"batch"` // samples a step, over all ranks
	Seed         uint64  `toml:"seed"`
	EvalEvery    int     `toml:"eval_every"`   // steps between evaluations; 0 means at the end only
	EvalBatches  int     `toml:"eval_batches"` // held-out batches an evaluation; 0 means none
	Out          string  `toml:"out"`          // folder of the run; "" means runs/<name>
	Device       string  `toml:"device"`       // "float32" or "float64": the processor, computing in that type; "cuda": NVIDIA's, in float32
	Precision    string  `toml:"precision"`    // "full": all in the device's type; "bf16": parameters and activations are bfloat16, sums, gradients and states float32
	Verify       bool    `toml:"verify"`       // replicas and tied copies are compared after every step
	Sample       string  `toml:"sample"`       // prompt to continue when training is done; "" means none
	SampleTokens int     `toml:"sample_tokens"`
	Temperature  float64 `toml:"temperature"` // of sampling; 0 takes the likeliest token
	TopK         int     `toml:"top_k"`       // samples among the likeliest so many; 0 means all
	TopP         float64 `toml:"top_p"`       // and among the fewest whose probabilities add up to this; 1 means all
	LogEvery     int     `toml:"log_every"`   // steps between printed lines; 0 means 1
	Timeout      float64 `toml:"timeout"`     // seconds that a call between ranks in other processes may take; 0 means any time
	Elastic      bool    `toml:"elastic"`     // ranks that are processes may be fewer or more than the mesh has: mesh.dp follows
}

// DeviceCUDA is the value of train.device for NVIDIA's devices, and MaxHeadCUDA the largest head that they have kernels for.
const (
	DeviceCUDA  = "cuda"
	MaxHeadCUDA = 256
)

// Values of train.precision.
const (
	PrecisionFull = "full"
	PrecisionBF16 = "bf16"
)

// CPUConfig is the [cpu] section.
type CPUConfig struct {
	ThreadsPerRank int    `toml:"threads_per_rank"` // 0 means the cores shared out evenly
	Multiply       string `toml:"multiply"`         // "float", or "bf16": matrix products round their inputs to bfloat16 and add in float32
}

// CheckpointConfig is the [checkpoint] section: when a run is saved in its folder.
type CheckpointConfig struct {
	Every       int     `toml:"every"`       // steps between saves; 0 means none by steps
	Minutes     float64 `toml:"minutes"`     // minutes between saves; 0 means none by time
	Last        bool    `toml:"last"`        // after the last step
	Keep        int     `toml:"keep"`        // newest saves that are kept; 0 means all
	Synchronous bool    `toml:"synchronous"` // training waits until a save is written
}

// Default is what a file that says nothing means: one rank, plain data parallelism, a tiny byte-level GPT-2.
func Default() *Config {
	return &Config{
		Model:      nn.Config{Family: nn.GPT2, Layers: 2, Width: 64, Heads: 4, Sequence: 64, Tied: true, Recompute: "none"},
		Data:       data.Config{Format: data.Text, Long: data.Refuse, Tokenizer: "bytes", HeldOut: 0.02, LastBatch: "pad"},
		Mesh:       MeshConfig{Axes: []string{"pp", "dp_replicate", "dp", "ep", "cp", "tp"}, DP: 1, PP: 1, TP: 1, EP: 1, CP: 1, Replicate: 1},
		Pipeline:   schedule.Config{Schedule: "1f1b", Microbatches: 1, Balance: "even"},
		Checkpoint: CheckpointConfig{Last: true, Keep: 3},
		Zero:       zero.Config{Offload: zero.OffloadNone},
		Optim:      optim.Default(),
		CPU:        CPUConfig{Multiply: "float"},
		Train:      TrainConfig{Steps: 100, Batch: 8, Seed: 1, EvalBatches: 4, Device: "float32", Precision: PrecisionFull, SampleTokens: 200, Temperature: 0.8, TopP: 1, LogEvery: 1, Timeout: 600},
	}
}

// Grid is the mesh of a validated section.
func (m MeshConfig) Grid() (mesh.Mesh, error) {
	var order []mesh.Axis
	for _, name := range m.Axes {
		a, err := mesh.ParseAxis(name)
		if err != nil {
			return mesh.Mesh{}, err
		}
		order = append(order, a)
	}
	return mesh.New(order, map[mesh.Axis]int{
		mesh.PP: m.PP, mesh.Replicate: m.Replicate, mesh.DP: m.DP, mesh.EP: m.EP, mesh.CP: m.CP, mesh.TP: m.TP,
	})
}

// Replicas is the number of ranks that see different samples.
func (m MeshConfig) Replicas() int { return m.DP * m.Replicate * m.EP }

// World is the number of ranks.
func (m MeshConfig) World() int { return m.DP * m.PP * m.TP * m.EP * m.CP * m.Replicate }
