// Package configs holds the configurations and the code that loads and validates them.
//
// A run is one TOML file: what the model is, how it is cut, how it is trained. A file states what differs
// from Default; each section's struct is owned by the room that reads it. Everything wrong is found before the
// first step and told at once, each problem with its field, value, rule and a value that would work.
//
//	file.toml ──┐
//	Default ────┼──▶ Config ──▶ Validate ──▶ Resolved ──▶ the run's folder
//	overrides ──┘  (--set section.key=value, short flags)
//
// Loading costs microseconds and allocates in proportion to the file, which is at most MaxFile bytes. Read next:
// tiny.toml, then the small files beside it, one an idea.
package configs
