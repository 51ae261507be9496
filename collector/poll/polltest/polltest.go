// Package polltest tests that sources of samples meet their contract, in every round:
//
//   - a sample is valid, of a quantity that the source declares, and told once a round;
//   - a value that is missing has a reason and is no number;
//   - the poller ends with its context, and closes without an error.
package polltest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
)

// Polled is a source that a test polls.
type Polled struct {
	*poll.Poller
	t      testing.TB
	source poll.Source
	values map[string]any
}

// Open opens a source until the test ends. Host and Bus of c are the test's.
func Open(t testing.TB, s poll.Source, c poll.Config) *Polled {
	t.Helper()
	p := &Polled{t: t, source: s}
	c.Host, c.Bus = "h", p
	c.Repeat = cmp.Or(c.Repeat, -1)
	var err error
	if p.Poller, err = poll.Open(s, c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if err := p.Run(ended); err != nil {
			t.Errorf("it ends with %v", err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// Publish takes a sample.
func (p *Polled) Publish(_ context.Context, v trimtab.Value) error {
	s, ok := v.(*trimtab.Sample)
	if !ok {
		p.t.Errorf("%T is no sample", v)
		return nil
	}
	if err := s.Validate(); err != nil {
		p.t.Errorf("%+v: %v", s, err)
	}
	if !slices.Contains(p.source.Quantities, s.Quantity) || s.Source == "" || s.Workload == trimtab.HostItself && s.Host != "h" {
		p.t.Errorf("%s tells %+v", p.source.Name, s)
	}
	name := fmt.Sprintf("%s/%s/%s %s", s.Workload, s.Host, s.Instance, s.Quantity)
	if before, told := p.values[name]; told {
		p.t.Errorf("%s is told twice in a round: %v", name, before)
	}
	if p.values == nil {
		p.values = map[string]any{}
	}
	if p.values[name] = s.Value; s.Missing != "" {
		p.values[name] = s.Missing
	}
	return nil
}

// Next polls once, and returns values, or why they are missing, by "workload/host/instance
// quantity".
func (p *Polled) Next() map[string]any {
	p.t.Helper()
	p.values = nil
	p.Round(p.t.Context())
	all := p.values
	p.values = nil
	return all
}
