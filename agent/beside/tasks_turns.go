package beside

import (
	"context"
	"sync"

	"github.com/trimtab/trimtab/actuator/task"
	"github.com/trimtab/trimtab/speculation"
)

// turns starts, freezes and ends tasks in goroutines beside the loop, one operation at a time for
// each task.
type turns struct {
	wake    chan struct{}
	running sync.WaitGroup
	mu      sync.Mutex
	// busy has the tasks on which an operation runs; over has the results of finished operations.
	busy map[task.ID]bool
	over []turned
}

// turned is the result of an operation on a task.
type turned struct {
	id   task.ID
	what string
	err  error
}

// The operations.
const (
	turnStart   = "start"
	turnKill    = "kill"
	turnFreeze  = "freeze"
	turnThaw    = "thaw"
	turnRelabel = "relabel"
	turnBind    = "bind"
)

// begin starts an operation on a task. It returns false if another operation on the task still
// runs.
func (t *turns) begin(ctx context.Context, id task.ID, what string, do func(ctx context.Context) error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[id] {
		return false
	}
	t.busy[id] = true
	ctx = context.WithoutCancel(ctx) // an operation is completed even if ctx ends; Close ends it
	t.running.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, turnWait)
		defer cancel()
		err := do(ctx)
		t.mu.Lock()
		delete(t.busy, id)
		t.over = append(t.over, turned{id, what, err})
		t.mu.Unlock()
		awake(t.wake)
	})
	return true
}

// take returns the results of the operations that ended since the last call.
func (t *turns) take() []turned {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.over
	t.over = nil
	return all
}

func (t *turns) isBusy(id task.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.busy[id]
}

func awake(loop chan<- struct{}) {
	select {
	case loop <- struct{}{}:
	default:
	}
}

// inbox queues the planner's lists for the loop.
type inbox struct {
	wake  chan struct{}
	mu    sync.Mutex
	lists []*speculation.Placements
}

// put adds a list. If too many wait, it replaces the oldest.
func (b *inbox) put(p *speculation.Placements) {
	b.mu.Lock()
	if len(b.lists) == maxInbox {
		b.lists = b.lists[1:]
	}
	b.lists = append(b.lists, p)
	b.mu.Unlock()
	awake(b.wake)
}

// take removes and returns all lists.
func (b *inbox) take() []*speculation.Placements {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.lists
	b.lists = nil
	return all
}
