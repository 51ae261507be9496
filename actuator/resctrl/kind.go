package resctrl

import (
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/rdt"
)

// Kind returns this kind of knob on a host; Host{} is this one. A location is that of a control
// group, whose tasks the knob limits. On a host without resctrl, opening a knob succeeds, and Probe
// says what is missing.
func Kind(h Host) actuator.Kind {
	return actuator.Kind{
		Name: "resctrl", Resources: []string{trimtab.LLC, trimtab.MemBW},
		Probe: actuator.ProbeGroups,
		Find:  actuator.FindGroups,
		Open: func(at actuator.Location, resource string) (actuator.Knob, error) {
			return actuator.OrNil(h.OpenKnob(Config{Root: at.Root, Path: at.Path, Resource: resource, High: at.High}))
		},
		Reopen:  actuator.Reopens(h.Reopen),
		Measure: func(_ actuator.Location, resource string) (float64, error) { return h.measure(resource) },
	}
}

// measure returns the capacity that trimtab may allocate: the ways that neither the default group
// nor other programs' groups have exclusively, or 100 percent. A total in MiB/s cannot be measured.
func (h Host) measure(resource string) (float64, error) {
	k := &Knob{config: Config{Tree: rdt.Root, Resource: resource}, host: h}
	v := 100.0
	err := k.inTree(func(f rdt.Files) error {
		l, err := k.look(f)
		switch {
		case err != nil:
			return err
		case resource == trimtab.LLC:
			v = float64(l.window.n)
		case l.bandwidth.MBps:
			return fmt.Errorf("MiB/s of this host: %w", trimtab.ErrUnsupported)
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("measure %s: %w", resource, err)
	}
	return v, nil
}
