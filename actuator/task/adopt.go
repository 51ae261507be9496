package task

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
)

// adopt reads the journal and the groups of an earlier runner. Ended tasks become known again; it
// kills the others.
func (r *Runner) adopt(ctx context.Context) error {
	found := map[string]*task{}
	for _, key := range r.journal.file.Keys(recordPrefix) {
		value, _ := r.journal.file.Get(key)
		leaf := key[len(recordPrefix):]
		var rec record
		if err := json.Unmarshal(value, &rec); err != nil || leafOf(rec.ID) != leaf || rec.ID.Validate() != nil || classes()[rec.Class] == 0 {
			r.logger.Warn("a record of a task cannot be read", "task", leaf)
			continue
		}
		t := newTask(rec.Info, leaf)
		t.info.PID = 0
		if rec.Boot != r.journal.boot && rec.State != Ended {
			t.info.Reason = "the host was restarted"
		}
		found[leaf] = t
	}
	groups, err := r.tree.leftovers()
	if err != nil {
		return err
	}
	var lost []*task
	for _, l := range groups {
		t := found[l.leaf]
		delete(found, l.leaf)
		if t == nil || t.info.Class != l.class {
			id, err := parseLeaf(l.leaf)
			if err != nil {
				id = ID{Task: l.leaf}
			}
			t = newTask(Info{ID: id, Class: l.class}, l.leaf)
		}
		lost = append(lost, t)
	}
	for _, t := range found {
		if t.info.State != Ended {
			lost = append(lost, t) // the host was restarted, or the task's group was not made yet
			continue
		}
		r.known.tasks[t.info.ID] = t
		r.known.ended = append(r.known.ended, t.info.ID)
	}
	slices.SortFunc(r.known.ended, func(a, b ID) int { return r.known.tasks[a].info.Ended.Compare(r.known.tasks[b].info.Ended) })
	r.tidy(lost)
	for _, t := range lost {
		t.info.State = Killing
		r.known.tasks[t.info.ID] = t
		r.keepers.Add(1)
		go r.keep(t, &verdict{outcome: Lost, reason: cmp.Or(t.info.Reason, "the agent that started it died")})
	}
	for _, t := range lost {
		if _, bad := r.known.await(ctx, t, Ended, Unkillable); bad != nil {
			err = errors.Join(err, bad)
		}
	}
	return err
}

// tidy removes output that belongs to no task.
func (r *Runner) tidy(lost []*task) {
	known := map[string]bool{}
	for _, t := range lost {
		known[t.leaf] = true
	}
	for _, t := range r.known.tasks {
		known[t.leaf] = true
	}
	entries, err := os.ReadDir(r.outputDir(""))
	if err != nil {
		return // no output was made yet
	}
	for _, e := range entries {
		if !known[e.Name()] {
			_ = os.RemoveAll(filepath.Join(r.outputDir(""), e.Name()))
		}
	}
}
