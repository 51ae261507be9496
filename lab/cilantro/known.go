package cilantro

import (
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/analyzer/forecast"
	"github.com/trimtab/trimtab/analyzer/learn"
	tree "github.com/trimtab/trimtab/lab/published"
)

// known is a learner that was told the true curve, and follows its drift.
type known struct {
	learn.Plain

	world *world
	job   int
	seen  int
	last  int // the window that was observed last
}

// Name returns "truth/1".
func (k *known) Name() string { return "truth/1" }

// Observe keeps the time alone.
func (k *known) Observe(o learn.Observation) error {
	k.seen++
	k.last = int(o.Time.Sub(startOfRuns())/(WindowSeconds*time.Second)) - 1
	return nil
}

// Predict returns the truth, without a band.
func (k *known) Predict(allocation, load float64) trimtab.Band {
	if load <= 0 {
		return trimtab.Band{}
	}
	p := k.world.factor(k.job, k.last) * k.world.jobs[k.job].profile.At(allocation/load)
	return trimtab.Band{Lower: p, Mean: p, Upper: p}
}

// Bends returns where the true curve bends.
func (k *known) Bends(load float64) []float64 {
	var out []float64
	for _, x := range k.world.jobs[k.job].profile.X {
		out = append(out, x*load)
	}
	return out
}

// Reports counts what was observed.
func (k *known) Reports() int { return k.seen }

// Snapshot and Restore are refused: the truth is not to be had elsewhere.
func (k *known) Snapshot() ([]byte, error) { return nil, trimtab.ErrUnsupported }

// Restore is refused.
func (k *known) Restore([]byte) error { return trimtab.ErrInvalid }

// clairvoyant is a forecaster that knows the loads to come.
type clairvoyant struct {
	world *world
	job   int
	seen  int
}

// Name returns "truth/1".
func (c *clairvoyant) Name() string { return "truth/1" }

// Observe counts how far the run is.
func (c *clairvoyant) Observe(float64) error {
	c.seen++
	return nil
}

// Skip does nothing: in a simulation none is missing.
func (*clairvoyant) Skip(int) {}

// Forecast returns the mean and the highest of the loads to come; at the end
// of the run, of the last ones.
func (c *clairvoyant) Forecast(horizon int, _ float64) (f forecast.Forecast, ok bool) {
	f.Model = c.Name()
	last := c.world.env.Rounds*Windows - 1
	for k := range horizon {
		l := c.world.env.Load(c.job, min(c.seen+k, last))
		f.Mean += l / float64(horizon)
		f.Upper = max(f.Upper, l)
	}
	f.Upper = max(f.Upper, f.Mean)
	return f, c.seen > 0
}

// Snapshot is refused.
func (c *clairvoyant) Snapshot() ([]byte, error) { return nil, trimtab.ErrUnsupported }

// Restore is refused.
func (c *clairvoyant) Restore([]byte) error { return trimtab.ErrInvalid }

// PublishedTree returns the published tree with the constants that its authors
// profiled beforehand, read off p: how far it goes, how high, and as Lipschitz
// constant the steepest slope between neighbouring tenths of that range. It
// panics if p is not valid.
func PublishedTree(p *Profile) learn.Learner {
	end := len(p.X) - 1
	c := tree.Config{Width: p.X[end], Top: p.P[end]}
	for k := range 10 {
		a, b := c.Width*float64(k)/10, c.Width*float64(k+1)/10
		c.Lipschitz = math.Max(c.Lipschitz, (p.At(b)-p.At(a))/(b-a))
	}
	c.Lipschitz = math.Min(math.Max(c.Lipschitz, learn.Least), learn.Greatest)
	t, err := tree.New(c)
	if err != nil {
		panic("published tree: " + err.Error())
	}
	return t
}
