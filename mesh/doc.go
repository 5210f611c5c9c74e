// Package mesh says who sits where.
//
// A run has one rank a device. The ranks form a grid with an axis for each way of cutting the work;
// a rank talks along an axis to the peers that differ from it in that coordinate only. The order of
// the axes decides which peers are neighbours: the last axis varies fastest and gets the fastest links.
//
//	pp2 x dp2 x tp2:        tp0  tp1
//	            pp0  dp0     0    1
//	                 dp1     2    3
//	            pp1  dp0     4    5
//	                 dp1     6    7
//
// A mesh costs nothing: it is arithmetic on rank numbers. Read next: package comm, which makes the
// groups of a mesh talk.
package mesh
