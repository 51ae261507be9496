// Package kernel learns one number over a vector of allocations, by kernel
// ridge regression, which is the mean of a Gaussian process: the end-to-end
// performance of an application over the units of each of its components. With
// x_i = ln(units_i + 1),
//
//	k(x, x') = s² (j M(‖x−x'‖/l_j) + (1−j) Σ w_i M(|x_i−x'_i|/l_w)),   Σ w = 1
//	M(r)     = (1 + √5 r + 5r²/3) exp(−√5 r)
//	mean     = m(x) + k(x)ᵀ (K + diag(noise_i))⁻¹ (y − m)
//	variance = k(x, x) − k(x)ᵀ (K + diag(noise_i))⁻¹ k(x)
//	bounds   = mean ± z √variance
//
// M is Matérn's kernel of smoothness 5/2. The joint term is the one of the
// paper; the additive one has a curve for each component, and with it a number
// of 19 unknowns is learnt from tens of reports, not from hundreds. Weights w
// say which components are worth learning: where spans tell the share of each in
// the latency, that is the weight, and m is what the spans predict.
//
// Reports of one allocation are one point, whose newest weigh most; at most
// Config.Points points are kept, the one that was not seen for longest goes. The
// scale s² is that of the residuals, the noise that of repeats. An update costs
// O(Points³), a mean O(Points), a bound O(Points²).
//
// Source: Cilantro (OSDI'23), sections 4.2 and 6 (kernel ridge regression,
// Matérn of smoothness 5/2, an upper bound); C. Rasmussen, C. Williams,
// "Gaussian Processes for Machine Learning" (2006), algorithm 2.1; D. Duvenaud,
// H. Nickisch, C. Rasmussen, "Additive Gaussian Processes" (NIPS'11).
//
// The package chooses no allocation: see planner/endtoend. It learns one vector;
// the curve of one workload over one resource is for learn/gp.
//
//	v, err := kernel.New(kernel.Config{Dimensions: 19, MaxUnits: 160, Level: 0.9})
//	err = v.Observe([]int{8, 8, …}, math.Log(p99))
//	band := v.Predict([]int{9, 7, …})
package kernel
