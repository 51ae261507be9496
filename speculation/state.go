package speculation

import (
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/valid"
)

// The states of a job and of a task, as [JobState] and [TaskState] say them.
const (
	StateWaiting   = "waiting"
	StatePlaced    = "placed"
	StateRunning   = "running"
	StateFrozen    = "frozen"
	StateDone      = "done"
	StateFailed    = "failed"
	StateCancelled = "cancelled"
	// StateForgotten is the last state of a job that is published: its readers forget the job then.
	StateForgotten = "forgotten"
)

// Over reports whether a state is final.
func Over(state string) bool {
	return state == StateDone || state == StateFailed || state == StateCancelled || state == StateForgotten
}

// Kind returns KindJobState.
func (j *JobState) Kind() trimtab.Kind { return KindJobState }

// Key returns pool/job.
func (j *JobState) Key() string { return j.Pool + "/" + j.Name }

// Validate checks names, states, counts and every task.
func (j *JobState) Validate() error {
	if err := valid.Named("state of a job of pool", j.Pool); err != nil {
		return err
	}
	if !IsTaskName(j.Name) {
		return trimtab.Invalidf("state of job %.80q: want its name", j.Name)
	}
	what := "state of job " + j.Name
	switch {
	case j.Time.IsZero():
		return trimtab.Invalidf("%s: no time", what)
	case !slices.Contains([]string{StateWaiting, StateRunning, StateDone, StateFailed, StateCancelled, StateForgotten}, j.State):
		return trimtab.Invalidf("%s: %.40q", what, j.State)
	case j.Priority < -MaxPriority || j.Priority > MaxPriority:
		return trimtab.Invalidf("%s: priority %d", what, j.Priority)
	case j.Waiting < 0 || j.Running < 0 || j.Done < 0 || j.Failed < 0 || j.Omitted < 0:
		return trimtab.Invalidf("%s: %d waiting, %d running, %d done, %d failed, %d left out", what, j.Waiting, j.Running, j.Done, j.Failed, j.Omitted)
	case len(j.Tasks) > MaxTaskStates:
		return trimtab.Invalidf("%s: %d tasks, limit %d", what, len(j.Tasks), MaxTaskStates)
	}
	if err := valid.Short(what, j.By); err != nil {
		return err
	}
	if err := valid.Texts(what, j.Problem); err != nil {
		return err
	}
	said := 0
	for i := range j.Tasks {
		if err := j.Tasks[i].validate(what); err != nil {
			return err
		}
		if a := j.Tasks[i].Last; a != nil {
			said += a.textBytes()
		}
	}
	if said > maxSaid {
		return trimtab.Invalidf("%s: its tasks say %d bytes, limit %d", what, said, maxSaid)
	}
	return nil
}

func (t *TaskState) validate(what string) error {
	if !IsTaskName(t.Name) {
		return trimtab.Invalidf("%s: task %.80q: want its name", what, t.Name)
	}
	what += ": task " + t.Name
	known := t.State == StateWaiting || t.State == StatePlaced || t.State == StateRunning || t.State == StateFrozen || t.State == StateDone || t.State == StateFailed || t.State == StateCancelled
	switch {
	case !known:
		return trimtab.Invalidf("%s: state %.40q", what, t.State)
	case t.Attempts < 0 || t.Attempts > MaxAttempt:
		return trimtab.Invalidf("%s: %d attempts", what, t.Attempts)
	}
	if err := valid.Short(what, t.Host, t.Granted); err != nil {
		return err
	}
	if err := valid.Texts(what, t.Why); err != nil {
		return err
	}
	if t.Last != nil {
		return t.Last.Validate()
	}
	return nil
}

// Brief returns what is sent: of many tasks those that did not end well, then unfinished ones,
// and last lines as far as they fit.
func (j *JobState) Brief() *JobState {
	out := *j
	out.Problem = valid.Brief(j.Problem)
	kept := make([]bool, len(j.Tasks))
	rank := func(t *TaskState) int {
		switch {
		case t.State == StateDone:
			return 2
		case Over(t.State):
			return 0
		}
		return 1
	}
	left := MaxTaskStates
	for r := range 3 {
		for i := range j.Tasks {
			if left > 0 && rank(&j.Tasks[i]) == r {
				kept[i] = true
				left--
			}
		}
	}
	out.Tasks = []TaskState{}
	room := maxSaid
	for i := range j.Tasks {
		if !kept[i] {
			out.Omitted++
			continue
		}
		t := j.Tasks[i]
		t.Why = valid.Brief(t.Why)
		if t.Last != nil {
			last := t.Last.Brief()
			last.fit(&room)
			t.Last = &last
		}
		out.Tasks = append(out.Tasks, t)
	}
	return &out
}
