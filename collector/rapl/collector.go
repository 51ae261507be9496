package rapl

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/quantity"
)

// Reasons why a value is missing, in addition to those of package poll.
const (
	unsupported = "not on this host"
	denied      = "permission denied"
	unreported  = "no limit told"
)

// Source is the power and the clocks of the host that r reads. A host that has nothing of it
// is no error: its samples say so.
func Source(r Reader) poll.Source {
	return poll.Source{Name: "rapl", About: "power of processor packages, and the clock of CPUs", Key: "power", Interval: 2 * time.Second,
		Quantities: []quantity.Quantity{quantity.Power, quantity.PowerLimit, quantity.Clock},
		Open:       func(poll.Config) (poll.Reader, error) { return &polled{reader: r}, nil }}
}

// polled keeps the last reading.
type polled struct {
	poll.Simple
	reader Reader
	before *Reading
}

func (p *polled) Read(context.Context, []poll.Group) ([]*trimtab.Sample, error) {
	now := p.reader.Read()
	all := Samples(p.before, &now)
	p.before = &now
	return all, nil
}

// Samples computes samples from two readings in order, or from the first one alone: power and power
// limit of each package, and the clock of each policy. The instance is the name of the package or
// policy.
func Samples(before, after *Reading) (all []*trimtab.Sample) {
	add := func(q quantity.Quantity, of string, v float64, missing string) *trimtab.Sample {
		s := poll.OfHost(q, of)
		s.Value, s.Missing = v, missing
		all = append(all, s)
		return s
	}
	if after.Err != nil {
		add(quantity.Power, "", 0, reason(after.Err))
		add(quantity.PowerLimit, "", 0, reason(after.Err))
	}
	for i, z := range after.Zones {
		if before == nil || len(before.Zones) != len(after.Zones) {
			add(quantity.Power, z.Name, 0, reason(z.Err))
			if z.Err == nil {
				all[len(all)-1].Missing = poll.First
			}
		} else {
			w, err := Draws(before.Zones[i], z, after.At-before.At)
			add(quantity.Power, z.Name, w, reason(err)).Window = trimtab.SecondsOf(max(0, after.At-before.At))
		}
		missing := ""
		if z.Limit <= 0 {
			missing = unreported
		}
		add(quantity.PowerLimit, z.Name, z.Limit, missing)
	}
	if after.NoPolicies != nil {
		add(quantity.Clock, "", 0, reason(after.NoPolicies))
	}
	for _, p := range after.Policies {
		add(quantity.Clock, p.Name, p.MHz, reason(p.Err))
	}
	return all
}

// reason returns why a value is missing, or "".
func reason(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, trimtab.ErrUnsupported):
		return unsupported
	case errors.Is(err, fs.ErrPermission):
		return denied
	}
	return poll.Unreadable
}
