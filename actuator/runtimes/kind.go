package runtimes

import (
	"fmt"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/actuator/cgroup"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Within returns a kind of knobs of control groups whose memory limits tell programs, where a location
// names a [actuator.Runtime].
func Within(k actuator.Kind) actuator.Kind {
	open, reopen, turn := k.Open, k.Reopen, new(turn)
	k.Open = func(at actuator.Location, resource string) (actuator.Knob, error) {
		knob, err := open(at, resource)
		if err != nil || resource != trimtab.Memory || at.Runtime.Kind == "" {
			return knob, err
		}
		return around(knob, at.Runtime, turn)
	}
	k.Reopen = func(b []byte) (actuator.Knob, error) {
		u, err := actuator.ReadUndo[undo](kind, b)
		if err != nil {
			return reopen(b)
		}
		knob, err := reopen(u.Of)
		if err != nil {
			return nil, err
		}
		m, err := around(knob, u.Runtime, turn)
		if err == nil {
			err = m.Traits().Recall(b)
		}
		return m, err
	}
	return k
}

// around opens the knob of a group's limit whose programs are told.
func around(knob actuator.Knob, at actuator.Runtime, turn *turn) (actuator.Knob, error) {
	group, ok := knob.(interface {
		Root() *hostfs.Root
		Group() string
	})
	if !ok || knob.Traits().Floor == nil {
		_ = knob.Close()
		return nil, fmt.Errorf("%s has no processes that could be told: %w", knob, trimtab.ErrUnsupported)
	}
	members := func() ([]int, error) { return cgroup.Processes(group.Root(), group.Group()) }
	return &Memory{Knob: knob, inner: knob.Traits(), config: at, members: members, find: find, turn: turn}, nil
}

// turn bounds how long falls may wait, one after another, since an actuator does nothing else meanwhile.
type turn struct {
	mu sync.Mutex
	// since is when the present window began, and spent what was waited in it.
	since time.Time
	spent time.Duration
}

const (
	// Within window, falls wait at most mostWait together; after that, each leastWait.
	window, mostWait, leastWait = time.Minute, 10 * time.Second, 500 * time.Millisecond
)

// take returns how long a fall may wait, at most wait. done must be called after it.
func (t *turn) take(wait time.Duration) (may time.Duration, done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	begun := time.Now()
	if begun.Sub(t.since) > window {
		t.since, t.spent = begun, 0
	}
	return min(wait, max(leastWait, mostWait-t.spent)), func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.spent += time.Since(begun)
	}
}
