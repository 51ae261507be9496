package actuator_test

import (
	"context"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// slowKnob is a knob whose values take effect when the test says so.
type slowKnob struct {
	*fileKnob
	inForce trimtab.Amount
}

func (k *slowKnob) Effective(context.Context) (trimtab.Amount, error) { return k.inForce, nil }

func (k *slowKnob) Traits() actuator.Traits {
	t := k.fileKnob.Traits()
	t.Effective = k.Effective
	return t
}

// takeEffect puts in force what was asked for.
func (k *slowKnob) takeEffect(t *testing.T) {
	t.Helper()
	v, err := k.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	k.inForce = v
}

// newSlowHost is a host with room for capacity whose knobs take effect late.
func newSlowHost(t *testing.T, capacity float64, values ...float64) (*host, []*slowKnob) {
	var amounts []trimtab.Amount
	for _, v := range values {
		amounts = append(amounts, units(v))
	}
	h := newHost(t, amounts...)
	h.config.Limits.Capacity = map[string]float64{"cpu": capacity}
	knobs := make([]*slowKnob, len(values))
	for i := range knobs {
		knobs[i] = &slowKnob{h.knobs[i], amounts[i]}
		h.config.Targets[i].Knob = knobs[i]
	}
	return h.open(), knobs
}

func TestAWriteThatIsNotInForceYetIsPendingAndSaysWhatIs(t *testing.T) {
	h, knobs := newSlowHost(t, 8, 2)
	o := h.Handle(t.Context(), h.plan(1, 1, set(0, units(2), units(3))))
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	r := o.Results[0]
	if r.Status != trimtab.Pending || r.Found != units(3) || !r.Known || r.Effective == nil || *r.Effective != units(2) {
		t.Errorf("result %+v: want 3 pending, 2 in force", r)
	}
	// Asked again, it is not written again, and still pending.
	if got := h.statuses(h.plan(1, 2, set(0, units(3), units(3)))); got[0] != trimtab.Pending || h.knobs[0].writes != 1 {
		t.Errorf("status %v after %d writes", got, h.knobs[0].writes)
	}
	knobs[0].takeEffect(t)
	if got := h.statuses(h.plan(1, 3, set(0, units(3), units(3)))); got[0] != trimtab.Equal {
		t.Errorf("status %v once it is in force", got)
	}
}

func TestTheHoldingSaysWhatIsInForceSinceWhen(t *testing.T) {
	h, knobs := newSlowHost(t, 8, 2)
	h.pass(time.Second)
	h.statuses(h.plan(1, 1, set(0, units(2), units(3))))
	asked := h.wall
	if k := h.Holding().Targets[0]; k.Now != units(3) || k.InForce() != units(2) || !k.Since.Equal(asked) || k.Problem != "" {
		t.Errorf("pending: %+v", k)
	}
	h.pass(time.Second)
	knobs[0].takeEffect(t)
	h.Tick(t.Context())
	if k := h.Holding().Targets[0]; k.Now != units(3) || k.InForce() != units(3) || k.Effective != nil || !k.Since.Equal(asked.Add(time.Second)) {
		t.Errorf("in force: %+v", k)
	}
}

func TestAPendingShrinkFreesNothingUntilItIsInForce(t *testing.T) {
	h, knobs := newSlowHost(t, 4, 2, 2)
	if got := h.statuses(h.plan(1, 1, set(0, units(2), units(1)), set(1, units(2), units(3)))); got[0] != trimtab.Pending || got[1] != trimtab.Refused {
		t.Errorf("statuses %v: want a pending shrink, and no grow", got)
	}
	knobs[0].takeEffect(t)
	if got := h.statuses(h.plan(1, 2, set(1, units(2), units(3)))); got[0] != trimtab.Pending {
		t.Errorf("status %v once the shrink is in force", got)
	}
}

func TestAPendingGrowKeepsItsRoom(t *testing.T) {
	h, _ := newSlowHost(t, 5, 2, 2)
	if got := h.statuses(h.plan(1, 1, set(0, units(2), units(3)))); got[0] != trimtab.Pending {
		t.Errorf("status %v", got)
	}
	if got := h.statuses(h.plan(1, 2, set(1, units(2), units(2.5)))); got[0] != trimtab.Refused {
		t.Errorf("status %v: the room is taken", got)
	}
}

func TestWhatIsInForceAndCannotBeReadIsAProblem(t *testing.T) {
	h, knobs := newSlowHost(t, 8, 2)
	knobs[0].inForce = units(-1)
	h.Tick(t.Context())
	if h.problem(0) == "" {
		t.Error("no problem")
	}
}
