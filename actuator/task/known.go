package task

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// known has the tasks that a runner knows. Its mutex also guards the changing fields of each task.
type known struct {
	mu     sync.Mutex
	tasks  map[ID]*task
	ended  []ID // in order of their end
	closed bool
}

func (k *known) find(id ID) (*task, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.tasks[id]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("task %v is not known: %w", id, trimtab.ErrStale)
}

// change changes the state of a task, and wakes the waiters.
func (k *known) change(t *task, how func(*Info)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	how(&t.info)
	close(t.changed)
	t.changed = make(chan struct{})
}

// await waits until a task is in one of the states.
func (k *known) await(ctx context.Context, t *task, states ...State) (Info, error) {
	for {
		k.mu.Lock()
		info, changed := t.info, t.changed
		k.mu.Unlock()
		if slices.Contains(states, info.State) {
			return info, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return info, fmt.Errorf("wait for task %v: %w", info.ID, ctx.Err())
		}
	}
}

// get returns the current state of a task.
func (k *known) get(t *task) Info {
	k.mu.Lock()
	defer k.mu.Unlock()
	return t.info
}

// beyond returns the tasks that ended longest ago, except the number to keep.
func (k *known) beyond(kept int) (old []*task) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for n := len(k.ended) - kept; n > 0; n-- {
		if t := k.tasks[k.ended[n-1]]; t != nil {
			old = append(old, t)
		}
	}
	return old
}

func (k *known) forget(t *task) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.tasks, t.info.ID)
	k.ended = slices.DeleteFunc(k.ended, func(id ID) bool { return id == t.info.ID })
}

// record is a task's entry in the journal.
type record struct {
	Info
	Boot  string        `json:"boot"`
	Until time.Duration `json:"until_ns"`
}

const recordPrefix = "task/"

// journal stores the records of tasks.
type journal struct {
	mu   sync.Mutex
	file *hostfs.Journal
	boot string // identifies the boot of the host
}

// enter stores the present state of tasks durably.
func (j *journal) enter(k *known, all ...*task) error {
	records := make([]record, len(all))
	k.mu.Lock()
	for i, t := range all {
		records[i] = record{t.info, j.boot, t.until}
	}
	k.mu.Unlock()
	return j.store(records...)
}

// store makes records durable.
func (j *journal) store(records ...record) error {
	var entries []hostfs.Entry
	for _, rec := range records {
		if rec.ID.Validate() != nil {
			continue // a group that was found without a task
		}
		b, err := json.Marshal(rec)
		if err != nil {
			return fmt.Errorf("store task: %w", err)
		}
		entries = append(entries, hostfs.Entry{Key: recordPrefix + leafOf(rec.ID), Value: b})
	}
	return j.append(entries...)
}

func (j *journal) append(entries ...hostfs.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.file.Append(entries...); err != nil {
		return fmt.Errorf("store task: %w", err)
	}
	return nil
}
