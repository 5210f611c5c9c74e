// Package report draws what plans say and what runs measured: one page that needs no network, pictures for documents, and timelines for trace
// viewers.
//
//	plan.Plan  ─┐                       ┌─▶ Write      one HTML page: charts are SVG made here, the timeline a canvas
//	run folder ─┼─▶ Item ─▶ charts ─────┼─▶ Pictures   PNG and SVG files
//	search     ─┘                       └─▶ WriteTrace Chrome's trace format
//
// What is read (a run folder may be anybody's) is bounded in size, and what is wrong with it becomes a note on the page: the rest is shown all the
// same. No text of theirs becomes markup: templates escape it, the page's scripts are named by their hashes, and there are no others.
//
// Read next: item.go, charts.go, page.go.
package report
