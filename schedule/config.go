package schedule

// Config is the [pipeline] section of a configuration.
type Config struct {
	Schedule     string `toml:"schedule"`     // a generator's name, one of Names
	Microbatches int    `toml:"microbatches"` // a step; 0 means 1
	Chunks       int    `toml:"chunks"`       // virtual stages a rank; 0 means the schedule's own number, 1 or 2
	Layers       []int  `toml:"layers"`       // layers of each virtual stage; empty means cut as Balance says
	File         string `toml:"file"`         // a schedule written as text, in place of a generator
	Balance      string `toml:"balance"`      // how layers are cut when Layers is empty: "even" (or empty) or "cost"
}
