// Package figure draws the results of simulations as SVG: courses over time,
// clouds of points with their names, and bars side by side.
//
// Source: the kinds of figures 8 to 13 of Cilantro (OSDI'23).
//
// The package knows no experiment. Series get the colours of a palette that colour-blind people can
// distinguish, in order.
package figure
