package data

// Config is the [data] section of a configuration.
type Config struct {
	Source    []string `toml:"source"`     // files, directories and globs; empty means the Go standard library's .go files
	Format    string   `toml:"format"`     // "text": a file is a document; "jsonl": a line is an example, and samples are packed from whole ones
	Documents string   `toml:"documents"`  // in one sample: "joined" sees across their borders, "apart" does not; "" is joined for text, apart for jsonl
	Long      string   `toml:"long"`       // an example longer than a sample: "refuse", "cut" or "drop"
	Tokenizer string   `toml:"tokenizer"`  // "bytes", "gpt2", or a tokenizer.json, or a folder with one
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

// What a source's files hold.
const (
	Text  = "text"
	JSONL = "jsonl"
)

// How documents in one sample see one another.
const (
	Joined = "joined" // attention and positions run through; a document's end predicts the next one's first token
	Apart  = "apart"  // attention stays inside a document, positions start anew, and nothing predicts across a border
)

// What happens to an example that is longer than a sample.
const (
	Refuse = "refuse"
	Cut    = "cut" // its end is left out
	// Drop leaves it out whole.
)

// The names a configuration may use.
var (
	Tokenizers  = []string{"bytes", "gpt2"}
	LastBatches = []string{Pad, Drop, Wrap}
	Formats     = []string{Text, JSONL}
	Borders     = []string{Joined, Apart}
	Longs       = []string{Refuse, Cut, Drop}
)

// Resolved fills in what "" and 0 stand for.
func (c Config) Resolved() Config {
	if c.Format == "" {
		c.Format = Text
	}
	if c.Documents == "" {
		c.Documents = Joined
		if c.Format == JSONL {
			c.Documents = Apart
		}
	}
	if c.Long == "" {
		c.Long = Refuse
	}
	if c.MaxTokens == 0 {
		c.MaxTokens = DefaultMaxTokens
	}
	return c
}

// DefaultMaxTokens bounds a corpus where the configuration does not: 32 MiB of memory.
const DefaultMaxTokens = 8 << 20
