package configs

import (
	"fmt"
	"io"
	"os"

	"triax/schedule"
)

// maxScheduleFile bounds a schedule's text in bytes.
const maxScheduleFile = 16 << 20

// Schedule makes the pipeline schedule of a validated configuration, generated or read from its file, and verifies it.
func Schedule(c *Config) (*schedule.Schedule, error) {
	p := c.Pipeline
	if p.File == "" {
		s, err := schedule.New(p.Schedule, c.Mesh.PP, p.Microbatches, p.Chunks)
		if err != nil {
			return nil, err
		}
		return s, schedule.Verify(s)
	}
	f, err := os.Open(p.File)
	if err != nil {
		return nil, fmt.Errorf("pipeline.file: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxScheduleFile))
	if err != nil {
		return nil, fmt.Errorf("pipeline.file: %w", err)
	}
	s, err := schedule.Parse(string(text))
	if err != nil {
		return nil, Problems{{Field: "pipeline.file", Value: p.File, Rule: err.Error(), Hint: "compare with the output of schedule text"}}
	}
	var ps Problems
	ps.add(len(s.Ranks) != c.Mesh.PP, "pipeline.file", p.File, fmt.Sprintf("it is for %d ranks, but mesh.pp = %d", len(s.Ranks), c.Mesh.PP),
		fmt.Sprintf("use mesh.pp = %d", len(s.Ranks)))
	ps.add(s.Micros != p.Microbatches, "pipeline.file", p.File,
		fmt.Sprintf("it is for %d microbatches, but pipeline.microbatches = %d", s.Micros, p.Microbatches),
		fmt.Sprintf("use pipeline.microbatches = %d", s.Micros))
	if err := schedule.Verify(s); err != nil {
		ps.add(true, "pipeline.file", p.File, err.Error(), "every op once, in an order in which what it needs is done before")
	}
	if len(ps) > 0 {
		return nil, ps
	}
	return s, nil
}
