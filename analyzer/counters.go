package analyzer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/quantity"
)

// maxCounters bounds the number of counter samples of one workload: eight quantities of 125
// instances.
const maxCounters = 1000

// maxCounterText bounds the length of the texts of one sample: a longer one would make the whole
// estimate invalid.
const maxCounterText = 256

// counterKey identifies one quantity of one instance.
type counterKey struct {
	quantity       quantity.Quantity
	host, instance string
}

// counters has the newest samples of performance counters of one workload. They are not used in
// estimates, only shown with them.
type counters struct {
	newest map[counterKey]*trimtab.Sample
}

// observe keeps a sample, and returns false if there is no space for it.
func (c *counters) observe(s *trimtab.Sample) bool {
	k := counterKey{s.Quantity, s.Host, s.Instance}
	old, known := c.newest[k]
	switch {
	case len(s.Source)+len(s.Missing) > maxCounterText:
		return false
	case !known && len(c.newest) >= maxCounters:
		return false
	case c.newest == nil:
		c.newest = map[counterKey]*trimtab.Sample{}
	case known && !newer(s, old):
		return true
	}
	c.newest[k] = s
	return true
}

// forget drops samples from before a time: the instance or host is gone.
func (c *counters) forget(before time.Time) {
	maps.DeleteFunc(c.newest, func(_ counterKey, s *trimtab.Sample) bool { return s.Time.Before(before) })
}

// of returns the counters of the last rounds as inputs of an estimate.
func (c *counters) of(now time.Time, round time.Duration) []trimtab.Input {
	c.forget(now.Add(-max(time.Minute, 3*round)))
	return c.inputs(now)
}

// inputs returns one value of each quantity. For several instances it is the sum, missing if one of
// them is, or for a ratio the highest one, that of the instance that is worst off.
func (c *counters) inputs(now time.Time) (out []trimtab.Input) {
	of := map[quantity.Quantity][]counterKey{}
	for k := range c.newest {
		of[k.quantity] = append(of[k.quantity], k)
	}
	for _, q := range slices.Sorted(maps.Keys(of)) {
		keys := of[q]
		slices.SortFunc(keys, func(a, b counterKey) int {
			return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.instance, b.instance))
		})
		out = append(out, c.input(now, q, keys))
	}
	return out
}

func (c *counters) input(now time.Time, q quantity.Quantity, keys []counterKey) trimtab.Input {
	var in *trimtab.Input
	for _, k := range keys {
		s := c.newest[k]
		one := trimtab.Input{Name: string(q), Value: s.Value, Age: age(now, s.Time), Source: s.Source, Missing: s.Missing}
		if len(keys) > 1 {
			one.Source = fmt.Sprintf("%s, highest of %d", s.Source, len(keys))
			if q.AddsUp() {
				one.Source = fmt.Sprintf("%s, sum of %d", s.Source, len(keys))
			}
		}
		switch {
		case in == nil:
			in = &one
		case q.AddsUp():
			in.Value, in.Age, in.Missing = in.Value+one.Value, max(in.Age, one.Age), cmp.Or(in.Missing, one.Missing)
		case in.Missing != "" || one.Missing == "" && one.Value > in.Value:
			in = &one
		}
	}
	if in.Missing != "" {
		in.Value = 0
	}
	return *in
}
