package data

// Config is the [data] section of a configuration.
type Config struct {
	Source    []string `toml:"source"`     // files, directories and globs; empty means the Go standard library's .go files
	Tokenizer string   `toml:"tokenizer"`  // "bytes" or "gpt2"
	HeldOut   float64  `toml:"held_out"`   // share of the tokens, at the end, kept for evaluation
	LastBatch string   `toml:"last_batch"` // what an epoch's short last batch does: "pad", "drop" or "wrap"
	MaxTokens int      `toml:"max_tokens"` // bound on the tokens read; 0 means DefaultMaxTokens
}

// Tokenizers and LastBatches list the names a configuration may use.
var (
	Tokenizers  = []string{"bytes", "gpt2"}
	LastBatches = []string{"pad", "drop", "wrap"}
)

// DefaultMaxTokens bounds a corpus where the configuration does not: 256 MiB of memory.
const DefaultMaxTokens = 64 << 20

// VocabOf is the number of token ids of a tokeniser, the end-of-text token included; 0 for an unknown name.
func VocabOf(tokenizer string) int {
	switch tokenizer {
	case "bytes":
		return 257
	case "gpt2":
		return 50257
	}
	return 0
}
