package fast

import (
	"embed"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/sim"
)

//go:embed loads/*.txt
var recorded embed.FS

// Names of the built-in loads.
const (
	Diurnal  = "diurnal"
	Noisy    = "noisy"
	Bursty   = "bursty"
	Constant = "constant"
	Steps    = "steps"
	// Tuning is the load on which constants were chosen; it is in no figure.
	Tuning = "diurnal-2"
)

// times is what the traces are multiplied with for hotel reservation.
const (
	times                  = 10
	constantRate           = 2000.0
	stepLow, stepHigh      = 1000.0, 3000.0
	stepSeconds, stepEvery = 5, 45
)

// Loads are the built-in loads of the figures.
func Loads() []string { return []string{Diurnal, Noisy, Bursty, Constant, Steps} }

// Load is a course of request rates.
type Load struct {
	Name string
	// Rate in requests/s, of each second.
	Rate []float64
	// Steps: it has steps, and is not counted as smooth.
	Steps bool
}

// Named returns a built-in load for so many seconds; of steps, where they are depends
// on the seed.
func Named(name string, seconds int, seed uint64) (*Load, error) {
	l := &Load{Name: name, Rate: make([]float64, seconds)}
	switch name {
	case Constant:
		for i := range l.Rate {
			l.Rate[i] = constantRate
		}
	case Steps:
		l.Steps = true
		a, b := lab.Seed(seed, 0x7374657073)
		r, left := rand.New(rand.NewPCG(a, b)), 0
		for i := range l.Rate {
			if left > 0 {
				left--
			} else if r.Float64() < 1.0/stepEvery {
				left = stepSeconds
			}
			l.Rate[i] = stepLow
			if left > 0 {
				l.Rate[i] = stepHigh
			}
		}
	default:
		text, err := recorded.ReadFile(path.Join("loads", name+".txt"))
		if err != nil {
			return nil, &sim.UnknownError{What: "load", Name: name, Known: Loads()}
		}
		trace := parse(string(text))
		for i := range l.Rate {
			l.Rate[i] = times * trace[i%len(trace)]
		}
	}
	return l, nil
}

func parse(text string) (out []float64) {
	for _, line := range strings.Fields(text) {
		if v, err := strconv.ParseFloat(line, 64); err == nil {
			out = append(out, v)
		}
	}
	return out
}

// meanOfFiles is what a load of a file is scaled to, in requests/s.
const meanOfFiles = 1600

// Read makes a load of text with one rate per line and second, scaled to a mean of
// 1600 requests/s; it is repeated where it is too short.
func Read(name, text string, seconds int) (*Load, error) {
	fields := strings.Fields(text)
	if len(fields) > seconds {
		fields = fields[:seconds]
	}
	v, sum := make([]float64, len(fields)), 0.0
	for i, f := range fields {
		x, err := strconv.ParseFloat(f, 64)
		if err != nil || !(x >= 0 && x < 1e12) {
			return nil, trimtab.Invalidf("load %s: line %d: %.40q: want a rate >= 0", name, i+1, f)
		}
		v[i], sum = x, sum+x
	}
	if sum == 0 {
		return nil, trimtab.Invalidf("load %s: no requests", name)
	}
	l := &Load{Name: name, Rate: make([]float64, seconds)}
	for i := range l.Rate {
		l.Rate[i] = v[i%len(v)] * meanOfFiles * float64(len(v)) / sum
	}
	return l, nil
}
