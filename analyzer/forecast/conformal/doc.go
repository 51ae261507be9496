// Package conformal turns point forecasts of a load into bounds for the
// highest load of the whole coming round, and picks the model whose bounds
// are sharpest.
//
// On the scale y = sqrt(load), where the noise of counts is even, a [Model]
// expects a path of the next h reports. With score = highest − highest of the
// path, for each forecast whose h reports have passed,
//
//	upper = (highest of the path + Q)²
//
// where Q is the quantile of the scores of the last 60 rounds (split
// conformal), at a level that is itself corrected by how often the bounds
// given out were crossed: after a miss the aim is at fewer.
//
// Every model is scored beside the naive forecast "as now" by the faded
// pinball loss of its bounds. The best is used; while none is sharper than
// naive by a margin, the forecast is made from the recent past and its model
// is "abstain".
//
// Source: Cilantro (OSDI'23), section 4.1.2: policies plan for the upper
// bound of the load. V. Vovk, A. Gammerman, G. Shafer, Algorithmic Learning in
// a Random World, 2005, for the quantile; I. Gibbs, E. Candès, Adaptive
// conformal inference under distribution shift, NeurIPS 2021, for the
// correction. The package knows no model but the naive one.
package conformal
