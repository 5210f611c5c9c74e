package data

// Config is the [data] section of a configuration.
type Config struct {
	Source    []string `toml:"source"`     // files, directories and globs; empty means the Go standard library's .go files
	Tokenizer string   `toml:"tokenizer"`  // "bytes" or "gpt2"
	HeldOut   float64  `toml:"held_out"`   // share of the tokens, at the end, kept for evaluation
	LastBatch string   `toml:"last_batch"` // what an epoch's short last batch does: "pad", "drop" or "wrap"
	MaxTokens int      `toml:"max_tokens"` // bound on the tokens read; 0 means DefaultMaxTokens
}

// What happens where an epoch's samples do not fill its last batch.
const (
	Pad  = "pad"  // fill up with masked samples, which carry no weight
	Drop = "drop" // leave those samples out in this epoch
	Wrap = "wrap" // fill up with the first samples of the next epoch
)

// Tokenizers and LastBatches list the names a configuration may use.
var (
	Tokenizers  = []string{"bytes", "gpt2"}
	LastBatches = []string{Pad, Drop, Wrap}
)

// DefaultMaxTokens bounds a corpus where the configuration does not: 32 MiB of memory.
const DefaultMaxTokens = 8 << 20
