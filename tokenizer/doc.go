// Package tokenizer turns text into the token ids that a published model was trained on, and back. It reads the tokenizer.json of Hugging
// Face's tokenizers where the model is byte-pair encoding (Sennrich et al. 2016, §3.2), over bytes (Radford et al. 2019, §2.2) or over
// characters with bytes to fall back on (Kudo & Richardson 2018), or the older vocab.json with merges.txt.
//
//	text ─▶ added tokens cut out ─▶ normalise ─▶ cut into pieces ─▶ merge pairs, lowest rank first ─▶ ids
//	ids ─▶ token texts ─▶ undo bytes, marks of spaces ─▶ text
//
// Special tokens in a text are text: Encode never makes an end-of-text or a role marker from what a document says. A step of a file that
// is not known here is refused by name; a hostile file costs no more than its size, since patterns run in linear time.
// What it costs: merging n characters takes n log n; a piece seen before is looked up.
// What to read next: load.go, bpe.go, cut.go.
package tokenizer
