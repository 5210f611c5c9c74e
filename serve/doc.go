// Package serve is the planner as a local page: layouts are chosen with sliders and fields, and their timeline, memory, traffic, step time and the front of all
// layouts follow at once. Run folders show what was measured beside what was planned.
//
// The page asks for what to show in the words of a configuration, `section.key=value`, and keeps the same words in its address, so that a link is a layout:
//
//	browser                     server
//	#model.preset=…&mesh.tp=8   GET /api/plan?model.preset=…&mesh.tp=8   → the item's part of the page, by report.WriteItem
//	                            GET /api/front?…                         → the search's front so far; asked again until it is done
//	                            GET /api/table?l=…&l=…                   → up to four layouts side by side
//	                            GET /api/export?to=megatron&…            → flags of another system
//	                            GET /api/run?n=0                         → a run's folder, as it is now
//
// Nothing is written, no file is read but those named on the command line, and whatever would take long is refused or bounded.
package serve
