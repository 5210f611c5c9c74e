// Package triax stands for the whole module: a hybrid-parallel training framework for transformers.
//
// One model is cut three ways, over tensor, pipeline and data axes, with ZeRO on the data axis; it runs for real, and is priced on
// paper, from the same TOML file. docs/architecture.md says what is in each room and where to start reading.
package triax
