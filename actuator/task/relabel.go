package task

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// moveWait is how long moving the processes of a task may take, since they may fork meanwhile.
const moveWait = 2 * time.Second

// Relabel moves a running, not frozen task to another class. If it fails, the task may be in the
// groups of both, and is supervised and killed in both; another call continues the move.
func (r *Runner) Relabel(ctx context.Context, id ID, class Class) error {
	t, err := r.known.find(id)
	if err != nil {
		return err
	}
	if classes()[class] == 0 {
		return trimtab.Invalidf("relabel task %v: class %.40q: want oversubscribed or regular", id, class)
	}
	if err := r.relabel(ctx, t, class); err != nil {
		return fmt.Errorf("relabel task %v to %s: %w", id, class, err)
	}
	return r.journal.enter(&r.known, t)
}

func (r *Runner) relabel(ctx context.Context, t *task, class Class) error {
	t.turning.Lock()
	defer t.turning.Unlock()
	from, to := r.groupsOf(t), r.tree.path(class, t.leaf)
	r.known.mu.Lock()
	state, old := t.info.State, t.info.Class
	r.known.mu.Unlock()
	switch {
	case state != Running:
		return fmt.Errorf("it is %s: %w", state, trimtab.ErrRefused)
	case old == class && len(from) == 1:
		return nil
	}
	if frozen, _ := r.frozen(ctx, from[0]); frozen { // on an error the move tells it
		return fmt.Errorf("another program froze it, and it would continue in another group: %w", trimtab.ErrRefused)
	}
	r.known.mu.Lock()
	t.groups = append([]string{to}, others(from, to)...) // both groups, whatever happens next
	r.known.mu.Unlock()
	err := r.tree.make(to)
	if err == nil {
		limits := t.spec
		limits.CPUs = "" // they belong to the class; the caller binds the task again
		err = r.tree.limit(to, limits)
	}
	oom := 0
	for _, group := range others(from, to) {
		if err == nil {
			err = r.tree.move(ctx, group, to, class)
		}
		if oom += r.tree.oomKills(group); err == nil {
			err = r.tree.clear(ctx, group)
		}
	}
	if err != nil {
		return err
	}
	r.known.mu.Lock()
	t.groups = []string{to}
	r.known.mu.Unlock()
	r.known.change(t, func(i *Info) { i.Class, i.OOMKills = class, i.OOMKills+oom })
	return nil
}

// others returns the groups without one.
func others(groups []string, but string) []string {
	return slices.DeleteFunc(slices.Clone(groups), func(g string) bool { return g == but })
}

// move moves all processes of a group, in each hierarchy until none is left: a process that was
// forked meanwhile starts in the group of its parent.
func (t *tree) move(ctx context.Context, from, to string, class Class) error {
	ctx, cancel := context.WithTimeout(ctx, moveWait)
	defer cancel()
	for _, r := range t.all {
		for {
			n, err := moveAll(r, from, to, class)
			if err != nil {
				return err
			}
			if n == 0 {
				break
			}
			if ctx.Err() != nil {
				return fmt.Errorf("move processes of group %s: %d are left: %w", from, n, ctx.Err())
			}
		}
	}
	return nil
}

// moveAll moves all processes of a group and of the groups beneath it, and returns how many there
// were.
func moveAll(r *hostfs.Root, from, to string, class Class) (n int, err error) {
	// The score of the out-of-memory killer; see the shim.
	score := map[Class]string{Oversubscribed: "1000", Regular: "0"}[class]
	all, err := processesIn(r, from)
	for _, pid := range all {
		word := strconv.Itoa(pid)
		if err := r.Write(path.Join(to, "cgroup.procs"), word); err != nil && !errors.Is(err, syscall.ESRCH) && !gone(err) {
			return len(all), err
		}
		_ = os.WriteFile("/proc/"+word+"/oom_score_adj", []byte(score), 0) // the process may have ended
	}
	return len(all), err
}

// clear removes an empty group.
func (t *tree) clear(ctx context.Context, group string) error {
	ctx, cancel := context.WithTimeout(ctx, buryWait)
	defer cancel()
	return t.remove(ctx, group)
}
