package actuator_test

import (
	"context"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
)

// markedKnob is a knob of something that is watched.
type markedKnob struct {
	memoryKnob
	of, others, reads int
	blind             bool
}

func (k *markedKnob) Traits() actuator.Traits { return actuator.Traits{Mark: k.Mark} }

func (k *markedKnob) Mark() actuator.Mark {
	if k.blind {
		return actuator.Mark{}
	}
	return actuator.Mark{Of: k.of, Changes: uint64(k.others)}
}

func (k *markedKnob) Read(ctx context.Context) (trimtab.Amount, error) {
	k.reads++
	return k.memoryKnob.Read(ctx)
}

// watched is a host with one such knob, and reads how often a heartbeat a second later
// reads it.
func watched(t *testing.T) (k *markedKnob, h *host, reads func() int) {
	t.Helper()
	k = &markedKnob{memoryKnob: memoryKnob{Name: "k", now: units(2)}, of: 1}
	h = newHost(t)
	h.config.Targets = []actuator.Target{{KnobID: trimtab.KnobID{Workload: "w0", Resource: "cpu"}, Knob: k, Min: 0.1, Max: 8, Mode: trimtab.Act}}
	h.open()
	h.Tick(t.Context())
	return k, h, func() int {
		before := k.reads
		h.pass(time.Second)
		h.Tick(t.Context())
		return k.reads - before
	}
}

func TestAHeartbeatReadsAWatchedKnobWhenSomethingChangedForItOrTenSecondsPassed(t *testing.T) {
	k, h, reads := watched(t)
	sum := 0
	for range 9 {
		sum += reads()
	}
	if sum != 0 {
		t.Errorf("nothing changed for 9 s, and it was read %d times", sum)
	}
	if reads() == 0 {
		t.Error("after 10 s it was not read")
	}
	k.now, k.of = units(3), 2
	if reads() == 0 || h.Holding().Targets[0].Now != units(3) {
		t.Error("its object changed, and it was not read")
	}
	k.others++
	if reads() == 0 {
		t.Error("another object changed, and it was not read")
	}
	k.blind = true
	for range 2 {
		if reads() == 0 {
			t.Error("it cannot tell whether anything changed, and was not read")
		}
	}
}

func TestAPlanReadsAWatchedKnobAlsoWhereItSaysThatNothingChanged(t *testing.T) {
	k, h, reads := watched(t)
	k.now = units(3) // behind the back of the watch
	if reads() != 0 {
		t.Fatal("the test wants a heartbeat that does not read it")
	}
	is(t, h.statuses(h.plan(1, 1, set(0, units(2), units(1)))), trimtab.Refused)
	if k.now != units(3) {
		t.Errorf("what somebody else set was written over: %v", k.now)
	}
}
