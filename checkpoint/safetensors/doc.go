// Package safetensors reads and writes files of named arrays: a length, a JSON header, and the arrays one after the other (the format of Hugging
// Face's library of that name, as its README describes it).
//
//	| 8 bytes: n | n bytes of JSON: name → type, shape, [from, to) | data ..... |
//
// A file is mapped, not read: opening one costs its header, and an array costs its pages when they are touched. Whatever a file holds, opening it
// never panics and allocates no more than a bounded header does. Read next: Open and Create.
package safetensors
