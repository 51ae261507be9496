package actuator_test

import (
	"testing"

	"github.com/trimtab/trimtab/actuator"
)

// inUnit is a knob of the control group of a systemd unit.
type inUnit struct{ *fileKnob }

func (k inUnit) Traits() actuator.Traits {
	t := k.fileKnob.Traits()
	t.Unit = func() string { return "shop.service" }
	return t
}

func TestAHoldingNamesTheSystemdUnitOfAKnob(t *testing.T) {
	h := newHost(t, units(2), units(1))
	h.config.Targets[0].Knob = inUnit{h.knobs[0]}
	if all := h.open().Holding().Targets; all[0].Unit != "shop.service" || all[1].Unit != "" {
		t.Errorf("units %q and %q", all[0].Unit, all[1].Unit)
	}
}
