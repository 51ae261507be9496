// Package kernel learns one number over a vector of allocations, by kernel
// ridge regression, which is the mean of a Gaussian process: the end-to-end
// performance of an application over what each of its components has. With x_i
// the logarithm of an allocation (per load), and t the number of the report,
//
//	k(x, x') = s² ((1−w) (j M(‖x−x'‖/l_j) + (1−j) Σ c_i M(|x_i−x'_i|/l)) + w exp(−|t−t'|/τ)),   Σ c = 1
//	M(r)     = (1 + √5 r + 5r²/3) exp(−√5 r)
//	mean     = m(x) + k(x)ᵀ (K + diag(noise_i))⁻¹ (y − m)
//	variance = k(x, x) − k(x)ᵀ (K + diag(noise_i))⁻¹ k(x)
//	bounds   = mean ± z √variance
//
// M is Matérn's kernel of smoothness 5/2. The joint term is the one of the
// paper; the additive one has a curve for each component, and with it a number
// of 19 unknowns is learnt from tens of reports, not from hundreds. Weights c
// say which components are worth learning: where spans tell the share of each in
// the latency, that is the weight, and m is what the spans predict.
//
// What wanders, w, is what no allocation explains and lasts a while: machines
// that warm up. Reports of one vector are one point, whose newest weigh most; at
// most Config.Points points are kept: the newest half, and of what is older that
// which has nothing newer beside it. Noise is one of seven parts of s², since
// allocations that are tried seldom repeat. For each part s² is the likeliest
// together with a guess of it, which counts as four reports; the part is the one
// with which reports and a guess of the noise are likeliest at its s², where the
// guess of s² counts no more. What is far above the least of the newest says no
// more than that it is at least that far (Config.Ceiling): a queue that stands
// for minutes would drown all else. An update costs seven factorisations, each
// O(Points³), a mean O(Points), a bound O(Points²).
//
// Source: Cilantro (OSDI'23), sections 4.2 and 6 (kernel ridge regression,
// Matérn of smoothness 5/2, an upper bound); C. Rasmussen, C. Williams,
// "Gaussian Processes for Machine Learning" (2006), algorithm 2.1; D. Duvenaud,
// H. Nickisch, C. Rasmussen, "Additive Gaussian Processes" (NIPS'11).
//
// The package chooses no allocation: see planner/endtoend. learn/gp learns the curve of one
// workload.
//
//	v, err := kernel.New(kernel.Config{Dimensions: 19, Level: 0.9})
//	err = v.Observe([]float64{math.Log(8), …}, math.Log(p99))
//	band := v.Predict([]float64{math.Log(9), …})
package kernel
