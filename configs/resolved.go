package configs

import (
	"bytes"

	"github.com/pelletier/go-toml/v2"

	"triax/data"
	"triax/schedule"
)

// Resolved is a copy in which every default that depends on other keys is written out: loading it again gives the same
// run. Keys that depend on the machine (threads, the default data source) stay as they are.
func Resolved(c *Config) *Config {
	r := *c
	r.Model = r.Model.Resolved()
	if r.Model.Vocab == 0 {
		r.Model.Vocab = data.VocabOf(r.Data.Tokenizer)
	}
	if r.Pipeline.File == "" {
		r.Pipeline.Chunks = schedule.ChunksOf(r.Pipeline.Schedule, r.Pipeline.Chunks)
	}
	r.Data = r.Data.Resolved()
	return &r
}

// TOML writes the configuration as a file that Load reads back to the same value.
func (c *Config) TOML() ([]byte, error) {
	var b bytes.Buffer
	e := toml.NewEncoder(&b)
	if err := e.Encode(c); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
