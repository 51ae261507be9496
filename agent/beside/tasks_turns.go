package beside

import (
	"context"
	"sync"

	"github.com/trimtab/trimtab/actuator/task"
	"github.com/trimtab/trimtab/speculation"
)

// turns starts, freezes and ends tasks beside the loop, one change at a time for each task.
type turns struct {
	wake    chan struct{}
	running sync.WaitGroup
	mu      sync.Mutex
	// busy are the tasks that are being started or turned, over what came of it.
	busy map[task.ID]bool
	over []turned
}

// turned is the result of starting or changing a task.
type turned struct {
	id   task.ID
	what string
	err  error
}

// The turns.
const (
	turnStart   = "start"
	turnKill    = "kill"
	turnFreeze  = "freeze"
	turnThaw    = "thaw"
	turnRelabel = "relabel"
	turnBind    = "bind"
)

// begin does something to a task. It reports false where something else is being done to
// it.
func (t *turns) begin(ctx context.Context, id task.ID, what string, do func(ctx context.Context) error) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.busy[id] {
		return false
	}
	t.busy[id] = true
	ctx = context.WithoutCancel(ctx) // what was begun is finished, or ended by Close
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

// take returns what came of turns since the last call.
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

// inbox keeps the planner's lists until the loop carries them out.
type inbox struct {
	wake  chan struct{}
	mu    sync.Mutex
	lists []*speculation.Placements
}

// put adds a list, in the place of the oldest where too many wait.
func (b *inbox) put(p *speculation.Placements) {
	b.mu.Lock()
	if len(b.lists) == maxInbox {
		b.lists = b.lists[1:]
	}
	b.lists = append(b.lists, p)
	b.mu.Unlock()
	awake(b.wake)
}

// take empties it.
func (b *inbox) take() []*speculation.Placements {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.lists
	b.lists = nil
	return all
}
