package zero

import "fmt"

// Config is the [zero] section of a configuration.
type Config struct {
	// Stage says what replicas share out among themselves (Rajbhandari et al. 2020, §5): 0 nothing, 1 optimizer
	// state, 2 also gradients, 3 also parameters.
	Stage int `toml:"stage"`
	// BucketElements closes a bucket once it holds this many elements; 0 means DefaultBucket.
	// At stage 3 a bucket is a layer, whatever its size.
	BucketElements int `toml:"bucket_elements"`
	// Overlap runs reductions and gathers beside computation. Results are bit-equal with it off.
	Overlap bool `toml:"overlap"`
	// Prefetch is how many layers ahead stage 3 gathers when Overlap is on; 0 means 1.
	Prefetch int `toml:"prefetch"`
	// KeepAfterForward keeps a layer's gathered parameters until its backward: less traffic, more memory.
	KeepAfterForward bool `toml:"keep_after_forward"`
	// Offload "disk" keeps optimizer state in memory-mapped files in OffloadDir, "" being the system's folder for temporary files.
	// They have no names and vanish with the process. Results are bit-equal.
	Offload    string `toml:"offload"`
	OffloadDir string `toml:"offload_dir"`
}

// DefaultBucket is the bucket size in elements when none is given: 25 million bytes of fp32, a size at which
// the fixed cost of a collective is small beside its transfer.
const DefaultBucket = 6_250_000

// Validate names everything wrong with the section.
func (c Config) Validate() error {
	if c.Stage < 0 || c.Stage > 3 {
		return fmt.Errorf("zero.stage = %d: a ZeRO stage is 0, 1, 2 or 3", c.Stage)
	}
	if c.BucketElements < 0 {
		return fmt.Errorf("zero.bucket_elements = %d: want 0 (the default, %d) or more", c.BucketElements, DefaultBucket)
	}
	if c.Prefetch < 0 {
		return fmt.Errorf("zero.prefetch = %d: want 0 or more", c.Prefetch)
	}
	return nil
}
