// Package devicetest is the examination that every tensor.Device must pass: each method against a plain
// float64 reference written for the purpose, on fresh random inputs at odd sizes.
//
// Inputs and outputs lie at odd offsets inside larger blocks full of NaN: a kernel that reads
// outside of its inputs, trusts what an output held before, or writes past an output's end is seen.
// References are direct transcriptions of the formulas; gradients are compared with hand-written ones
// and with central differences of the reference forward.
//
// A new device is brought up level by level, in the order of the subtests: memory, matrix,
// elementwise, normal, attend, lookup, loss, update.
package devicetest
