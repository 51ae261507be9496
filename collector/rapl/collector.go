package rapl

import (
	"context"
	"errors"
	"io/fs"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/internal/hosted"
)

// Source is the source of all samples of this package.
const Source = "rapl"

// The reasons why a value is missing.
const (
	unsupported = "not on this host"
	denied      = "permission denied"
	unreadable  = "unreadable"
	first       = "first reading"
	untold      = "no limit told"
)

// Config says where samples of the host go.
type Config = hosted.Config

// Collector publishes readings of a host.
type Collector struct {
	config Config
	reader Reader
	before *Reading
}

// Open checks the configuration. A host that has nothing of it is no error: its
// samples say so.
func Open(r Reader, c Config) (*Collector, error) {
	if err := c.Fill(Source); err != nil {
		return nil, err
	}
	return &Collector{config: c, reader: r}, nil
}

// Close does nothing: nothing is kept open.
func (c *Collector) Close() error { return nil }

// Run publishes until ctx ends; it then returns nil.
func (c *Collector) Run(ctx context.Context) error {
	return c.config.Run(ctx, Source, func() []*trimtab.Sample {
		now := c.reader.Read()
		all := Samples(c.before, &now)
		c.before = &now
		return all
	})
}

// Samples makes samples of two readings in order, or of the first one: of each
// package what it draws and may draw, of each policy its clock. Their instance is
// the name of package or policy.
func Samples(before, after *Reading) (all []*trimtab.Sample) {
	add := func(q trimtab.Quantity, of string, v float64, missing string) *trimtab.Sample {
		s := &trimtab.Sample{Quantity: q, Instance: of, Value: v, Missing: missing}
		if missing != "" {
			s.Value = 0
		}
		all = append(all, s)
		return s
	}
	if after.Err != nil {
		add(trimtab.Power, "", 0, reason(after.Err))
		add(trimtab.PowerLimit, "", 0, reason(after.Err))
	}
	for i, z := range after.Zones {
		if before == nil || len(before.Zones) != len(after.Zones) {
			add(trimtab.Power, z.Name, 0, reason(z.Err))
			if z.Err == nil {
				all[len(all)-1].Missing = first
			}
		} else {
			w, err := Draws(before.Zones[i], z, after.At-before.At)
			add(trimtab.Power, z.Name, w, reason(err)).Window = trimtab.SecondsOf(max(0, after.At-before.At))
		}
		missing := ""
		if z.Limit <= 0 {
			missing = untold
		}
		add(trimtab.PowerLimit, z.Name, z.Limit, missing)
	}
	if after.NoPolicies != nil {
		add(trimtab.Clock, "", 0, reason(after.NoPolicies))
	}
	for _, p := range after.Policies {
		add(trimtab.Clock, p.Name, p.MHz, reason(p.Err))
	}
	return all
}

// reason is why a value is missing, or "".
func reason(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, trimtab.ErrUnsupported):
		return unsupported
	case errors.Is(err, fs.ErrPermission):
		return denied
	}
	return unreadable
}
