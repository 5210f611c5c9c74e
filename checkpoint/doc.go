// Package checkpoint keeps a run on disk so that it can go on under any other cut.
//
// Nothing in a checkpoint depends on the mesh that wrote it. What is kept is the logical content: every weight and optimizer state by global name, in
// stretches of the whole parameter, and the step, of which learning rate, random streams and data position are functions. Each rank writes what
// it owns; of the ranks that hold copies one does.
//
//	runs/x/checkpoints/
//	  step-000000120/
//	    index.json                 step, configuration, and every stretch: kind, parameter, place in it, file, checksum
//	    rank-00000.safetensors     the stretches that rank 0 owned
//	    rank-00001.safetensors
//	  .partial-step-000000140-...  being written: renamed when every file is synced, so a folder that is named a step is whole
//
// Reading is asking for logical elements: a Source finds the stretches that have them, whoever wrote them, and a rank reads its part and no more. Files are
// mapped. Checksums are of each stretch; a file that is cut off, changed or not ours is refused by name, and Latest takes the one before.
//
// It costs the model's and the optimizer's bytes once (12 a parameter with fp32 and AdamW), copied in memory while training waits and
// written while it goes on. Read next: Stretch, Writer, Open.
package checkpoint
