package supervise

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// The end of a process. systemd kills it 30 s after it asked (TimeoutStopSec of the units), so that
// all waits together are bounded, whatever does not answer: a full disk, a NATS server that is
// away, a collector of yours. The watchdog restores limits that were not restored by then.
const (
	// EndBus is how long stages may wait for the bus at the end, to publish and to save the learned
	// state.
	EndBus = 10 * time.Second
	// endParts is the time limit of the parts that restore limits, end tasks and answer requests.
	endParts = 20 * time.Second
	// EndWithin bounds all of it.
	EndWithin = 27 * time.Second
)

// Ending is the time that the end of the process has left.
type Ending struct {
	mu    sync.Mutex
	began time.Time // zero: the process is not ending
	// longer is how much longer the rate limits of an API server make the end take. The process
	// manager must wait as long: see actuator.MaxCloseTime.
	longer time.Duration
	// part is the part that is being stopped.
	part string
}

// Begin starts the end, and returns when that was, and whether it had not begun.
func (e *Ending) Begin() (began time.Time, first bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if first = e.began.IsZero(); first {
		e.began = time.Now()
	}
	return e.began, first
}

// Lengthen adds to the time of the end, and returns until when the end may wait for the bus; zero:
// the process is not ending.
func (e *Ending) Lengthen(by time.Duration) (bus time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.began.IsZero() {
		return time.Time{}
	}
	e.longer += by
	return e.began.Add(EndBus + e.longer)
}

// Within returns a context for one wait; at the end of the process it is bounded by the time left
// for all of them.
func (e *Ending) Within(d time.Duration) (context.Context, context.CancelFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	until := time.Now().Add(d)
	if last := e.began.Add(endParts + e.longer); !e.began.IsZero() && last.Before(until) {
		until = last
	}
	return context.WithDeadline(context.Background(), until)
}

// Stops records the part that is being stopped.
func (e *Ending) Stops(part string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.part = part
}

// Await waits until all has ended, or its time is over.
func (e *Ending) Await(ended <-chan error) error {
	for {
		e.mu.Lock()
		left, part := time.Until(e.began.Add(EndWithin+e.longer)), e.part
		e.mu.Unlock()
		if left <= 0 {
			return fmt.Errorf("stop: %s did not end in time: the watchdog puts back what is left", part)
		}
		late := time.NewTimer(left)
		select {
		case err := <-ended:
			late.Stop()
			return err
		case <-late.C:
		}
	}
}
