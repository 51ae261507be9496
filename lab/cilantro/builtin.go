package cilantro

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/trimtab/trimtab/lab"
)

// BuiltIn returns the environment without the published data: the jobs of
// table 3 of the paper, curves and a trace of the given length in seconds
// whose few parameters were fitted to the profiles and to the trace of tweets
// that the authors published (romilbhardwaj/cilantro and cilantro-workloads,
// MIT).
func BuiltIn(seconds int) *Environment {
	return &Environment{Name: "built-in", Jobs: table3(), Profiles: fitted(), Trace: tweets(seconds), Rounds: Rounds, Capacity: Capacity}
}

// table3 is table 3 of the paper.
func table3() []Job {
	var jobs []Job
	add := func(prefix, kind string, fraction bool, scale float64, slo []float64, shapes ...string) {
		for i, s := range slo {
			jobs = append(jobs, Job{Name: fmt.Sprintf("%sj%d", prefix, i+1), Type: kind, Fraction: fraction, SLO: s, Shape: shapes[i], Scale: scale, Weight: 1})
		}
	}
	const lin, quad, root = "linear", "quadratic", "sqrt"
	add("db0", "craydb0", true, 0.5, []float64{0.9, 0.9, 0.95}, lin, lin, root)
	add("db1", "craydb1", true, 1.05, []float64{0.9, 0.9, 0.95, 0.95, 0.95, 0.99, 0.99}, lin, quad, quad, lin, quad, quad, root)
	add("prs", "craypredserv", true, 1, []float64{0.9, 0.9, 0.95}, lin, root, root)
	add("mlt", "craymltrain", false, 0, []float64{400, 400, 450, 450, 500, 500, 500}, root, root, lin, lin, quad, quad, quad)
	return jobs
}

// fit is a curve top·Σ wᵢ (1 − e^(−x/sᵢ)) over x = a/l.
type fit struct {
	top, end, work float64
	w, s           []float64
}

// fitted returns the curves: least squares on the published points, which they
// miss by 2 to 3.5% of their end (root mean square); the steps of the published
// estimator's bins are smoothed out. Work is the mean execution time of table 4
// where there is one.
func fitted() map[string]*Profile {
	out := map[string]*Profile{}
	for name, f := range map[string]fit{
		"craydb0":      {top: 0.9893, end: 8, work: 0.28, w: []float64{0.5847, 0.4153}, s: []float64{0.0016, 0.239}},
		"craydb1":      {top: 1.453, end: 4, work: 0.67, w: []float64{0.5741, 0.4259}, s: []float64{0.1623, 16.35}},
		"craypredserv": {top: 1.017, end: 4.2, work: 0.25, w: []float64{0.9777, 0.0223}, s: []float64{0.1658, 11.84}},
		"craymltrain":  {top: 706.3, end: 150, work: 1, w: []float64{0.841, 0.159}, s: []float64{144.6, 6.907}},
	} {
		out[name] = f.profile()
	}
	return out
}

// points of a fitted curve.
const points = 200

func (f fit) profile() *Profile {
	p := &Profile{Work: f.work}
	for i := range points {
		x, v := f.end*math.Pow(float64(i+1)/points, 3), 0.0 // dense where it is steep
		for k, w := range f.w {
			v += w * (1 - math.Exp(-x/f.s[k]))
		}
		p.X, p.P = append(p.X, x), append(p.P, f.top*v)
	}
	return p
}

// tweets draws a trace: Poisson around a day's course times noise that is
// correlated over minutes, as the trace of tweets is.
func tweets(seconds int) []float64 {
	const mean, daily, day = 41.0, 0.24, 86400.0
	const spread, memory = 0.03, 300.0 // of the noise, in shares and seconds
	r := rand.New(rand.NewPCG(lab.Seed(2023)))
	out := make([]float64, seconds)
	noise, keep := 0.0, math.Exp(-1/memory)
	for i := range out {
		noise = keep*noise + math.Sqrt(1-keep*keep)*spread*r.NormFloat64()
		rate := mean * (1 + daily*math.Sin(2*math.Pi*float64(i)/day)) * math.Exp(noise)
		out[i] = poisson(r, rate)
	}
	return out
}

// poisson draws by multiplying uniform numbers; rates are below 200.
func poisson(r *rand.Rand, rate float64) float64 {
	limit, product, n := math.Exp(-rate), 1.0, -1.0
	for product > limit {
		product *= r.Float64()
		n++
	}
	return n
}
