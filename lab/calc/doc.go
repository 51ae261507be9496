// Package calc runs the algorithms of the papers by themselves: one JSON
// document in, one out, for notebooks, for debugging, and for checking against
// other implementations. `trimtab-lab calc NAME` is its command line.
//
// Each algorithm is a [Func] in a file of its own. It reads its input with
// [Decode], which is strict: an unknown field, a field twice or missing, null
// where a value belongs, a wrong type, a number out of range, trailing data
// and more than [MaxBytes] are errors with line and column. What the numbers
// mean is checked after that, and such errors name the row.
//
// The package computes nothing itself; formulas and sources are in the
// packages that it calls: planner/drf, planner/fair, analyzer/….
package calc
