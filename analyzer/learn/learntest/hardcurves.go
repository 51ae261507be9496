package learntest

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// HardCurves returns curves that are hard for smooth models: jagged, in steps
// large and small, and some that fall.
func HardCurves() []Curve {
	out := []Curve{
		{Name: "early step", Low: 0.1, High: 2, At: func(x float64) float64 { return step(x, 0.2, 0.1, 0.9) }},
		{Name: "late step", Low: 0.1, High: 2, At: func(x float64) float64 { return step(x, 1.7, 0.7, 0.99) }},
		{Name: "low", Low: 0.1, High: 2, At: func(x float64) float64 { return 0.06 * x }},
		{Name: "peak", Low: 0.1, High: 2, At: func(x float64) float64 { return 0.95 * math.Exp(-square(math.Log(x/0.7))) }},
		{Name: "retrograde", Low: 1, High: 60, Rate: true, At: func(x float64) float64 { return 40 * x / (1 + 0.05*(x-1) + 0.002*x*(x-1)) }},
		{Name: "dip", Low: 0.1, High: 2, At: func(x float64) float64 {
			return 0.9*(1-math.Exp(-4*x)) - 0.15*math.Exp(-square((x-1.2)/0.15))
		}},
	}
	for seed := range uint64(3) {
		out = append(out, jagged(seed))
	}
	return out
}

func square(v float64) float64 { return v * v }

// jagged rises by random steps at 40 random places.
func jagged(seed uint64) Curve {
	r := rand.New(rand.NewPCG(seed, 5))
	at, rise, sum := [40]float64{}, [40]float64{}, 0.0
	for i := range at {
		at[i], rise[i] = 0.1+1.9*r.Float64(), square(r.ExpFloat64())
		sum += rise[i]
	}
	return Curve{Name: fmt.Sprintf("jagged %d", seed), Low: 0.1, High: 2, At: func(x float64) float64 {
		p := 0.2
		for i := range at {
			if x >= at[i] {
				p += 0.78 * rise[i] / sum
			}
		}
		return p
	}}
}
