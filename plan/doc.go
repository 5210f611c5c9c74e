// Package plan is the same run on paper: from the configuration that train runs, what a layout costs on this machine or on a
// cluster that nobody owns, without running it.
//
// The layers are the real ones. They are called once each on a device that has no memory and does no arithmetic, but
// prices every kernel and counts every byte (Sheet), with groups that book their calls and move nothing. So what a layer
// keeps, computes and sends is read off the code that will do it. Buckets come from package zero's own layout, messages from the
// schedule. The ops' prices then go on the schedule's clock.
//
//	layer ─ on paper ─▶ time, bytes kept, calls        ┐
//	zero.Layout ─────▶ states, buckets, calls           ├─▶ schedule.Simulate ─▶ step time, bubble, memory, traffic
//	schedule ────────▶ order, messages, microbatches    ┘
//
// Read next: plan.go, price.go, collective.go.
package plan
