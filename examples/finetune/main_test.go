package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"

	"triax/mesh"
)

var update = flag.Bool("update", false, "rewrite output.txt")

// TestOutput compares what the program prints with output.txt.
func TestOutput(t *testing.T) {
	var b bytes.Buffer
	if err := run(&b, "ranks.jsonl"); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("output.txt", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("output.txt")
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// TestExamples: what the examples teach is what package mesh says.
func TestExamples(t *testing.T) {
	text, err := os.ReadFile("ranks.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if len(lines) != 342 {
		t.Errorf("%d lines", len(lines))
	}
	for i, line := range lines {
		var e struct{ Prompt, Completion string }
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		var rank, pp, dp, tp int
		if _, err := fmt.Sscanf(e.Prompt, "rank %d of pp%d x dp%d x tp%d:", &rank, &pp, &dp, &tp); err != nil {
			t.Fatalf("line %d: %q: %v", i+1, e.Prompt, err)
		}
		m, err := mesh.New([]mesh.Axis{mesh.PP, mesh.DP, mesh.TP}, map[mesh.Axis]int{mesh.PP: pp, mesh.DP: dp, mesh.TP: tp})
		if err != nil {
			t.Fatal(err)
		}
		if want := " " + m.Place(rank); e.Completion != want {
			t.Errorf("line %d: %q %q, want %q", i+1, e.Prompt, e.Completion, want)
		}
	}
}
