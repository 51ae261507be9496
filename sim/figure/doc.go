// Package figure draws the results of simulations as SVG: courses over time,
// clouds of points with their names, and bars side by side.
//
// Source: the kinds of figures 8 to 13 of Cilantro (OSDI'23).
//
// The package knows no experiment, and chooses no colours by meaning: series
// take those of a palette that is told apart by the colour-blind, in order.
package figure
