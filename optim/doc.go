// Package optim holds the update rules, on flat slices of parameters, and what steers them: the
// learning-rate curve and the bound on the gradient norm.
//
// A rule sees a run of elements and its state, never a layer or a mesh: any cut of the parameters over
// ranks gives the same arithmetic for each element, which is what lets ZeRO share the work out.
//
//	rate        ____
//	           /    ''--.
//	          /          '--.
//	         /               '--.____   min_lr
//	        |warmup|  curve     |
//	step    1                   steps
//
// AdamW keeps two state tensors of the size of the parameters, SGD one with momentum and none
// without. A step reads the gradient and reads and writes the rest once, so it costs memory
// bandwidth only. Read next: package zero, which decides on which rank an element's state lives.
package optim
