package speculation

import (
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/valid"
)

// The bounds of messages about speculative tasks.
const (
	// A priority lies between -MaxPriority and MaxPriority. MaxRetries bounds the retries
	// of a task.
	MaxPriority = 1_000_000
	MaxRetries  = 100
	// MaxTaskText bounds the text of one task, MaxListText that of all tasks of a job or of a
	// host's list: in bytes as JSON.
	MaxTaskText = 256 << 10
	MaxListText = 3 << 20
	// MaxListParts bounds the words of a job, or of a host's list, in number: a word of
	// a command is one, a variable a quarter, a task six.
	MaxListParts = 60_000
	// MaxLastLines bounds the last lines of an attempt, MaxLastBytes all of them.
	MaxLastLines = 20
	MaxLastBytes = 16 << 10
	// MaxTaskStates is how many tasks a [JobState] tells of.
	MaxTaskStates = 1000
	// MaxPlacementLease bounds the lease of a host's list.
	MaxPlacementLease = trimtab.Seconds(3600)
	maxSaid           = 2 << 20
	maxSpan           = trimtab.Seconds(366 * 24 * 3600)
	maxTaskCores      = 1 << 20
	maxTaskMemory     = 1 << 60
)

// Kind returns KindMachine.
func (m *Machine) Kind() trimtab.Kind { return KindMachine }

// Key returns pool/host, as for a [trimtab.Holding].
func (m *Machine) Key() string { return m.Pool + "/" + m.Host }

// Validate checks names, bounds, every number and every attempt.
func (m *Machine) Validate() error {
	what := "machine " + m.Host
	if err := namedHere("machine", m.Pool, m.Host); err != nil {
		return err
	}
	switch {
	case m.Time.IsZero():
		return trimtab.Invalidf("%s: no time", what)
	case m.Life < 1 || m.Report < 1:
		return trimtab.Invalidf("%s: life %d, report %d: want both from 1", what, m.Life, m.Report)
	case m.Running < 0 || m.Waiting < 0 || m.Regular < 0:
		return trimtab.Invalidf("%s: %d running, %d waiting, %d regular", what, m.Running, m.Waiting, m.Regular)
	case len(m.Attempts) > MaxAttemptsHere:
		return trimtab.Invalidf("%s: %d attempts, limit %d", what, len(m.Attempts), MaxAttemptsHere)
	case len(m.Signals) > MaxSignals:
		return trimtab.Invalidf("%s: %d signals, limit %d", what, len(m.Signals), MaxSignals)
	}
	for i := range m.Signals {
		if err := m.Signals[i].validate(what); err != nil {
			return err
		}
	}
	for _, of := range []map[string]float64{m.Load, m.Capacity} {
		if err := valid.Amounts(what, of, trimtab.MaxResources); err != nil {
			return err
		}
	}
	for _, v := range []*float64{m.CPI, m.MPKI} {
		if v != nil && !valid.IsNonNegative(*v) {
			return valid.NonNegative(what+": counter", *v)
		}
	}
	if err := valid.Texts(what, m.Blocked); err != nil {
		return err
	}
	return m.validateAttempts(what)
}

func (s *ServiceSignal) validate(what string) error {
	if err := valid.Named(what+": signal of workload", s.Workload); err != nil {
		return err
	}
	if err := valid.Short(what, s.Instance, s.Signal, s.Model); err != nil {
		return err
	}
	for _, v := range []float64{s.Value, s.Typical, s.Boundary} {
		if !valid.IsNonNegative(v) {
			return valid.NonNegative(what+": "+s.Signal+" of "+s.Workload, v)
		}
	}
	if s.Distance != nil && !(*s.Distance >= 0 && *s.Distance <= 1) {
		return trimtab.Invalidf("%s: %s of %s: distance %v: want 0 to 1", what, s.Signal, s.Workload, *s.Distance)
	}
	if s.FalseAlarms > s.Judged {
		return trimtab.Invalidf("%s: %s of %s: %d false alarms of %d windows", what, s.Signal, s.Workload, s.FalseAlarms, s.Judged)
	}
	return nil
}

func (m *Machine) validateAttempts(what string) error {
	seen := make(map[AttemptID]bool, len(m.Attempts))
	said := 0
	for i := range m.Attempts {
		a := &m.Attempts[i]
		if err := a.Validate(); err != nil {
			return err
		}
		if seen[a.AttemptID] {
			return trimtab.Invalidf("%s: %s twice", what, a.AttemptID)
		}
		seen[a.AttemptID] = true
		said += a.textBytes()
	}
	if said > maxSaid {
		return trimtab.Invalidf("%s: its attempts say %d bytes, limit %d", what, said, maxSaid)
	}
	return nil
}

// Brief returns what is sent: last lines and texts of attempts as far as they fit, ended attempts
// first.
func (m *Machine) Brief() *Machine {
	out := *m
	out.Blocked, out.Attempts = valid.Brief(m.Blocked), make([]Attempt, len(m.Attempts))
	room := maxSaid
	for _, ended := range []bool{true, false} {
		for i := range m.Attempts {
			if (m.Attempts[i].State == AttemptEnded) != ended {
				continue
			}
			out.Attempts[i] = m.Attempts[i].Brief()
			out.Attempts[i].fit(&room)
		}
	}
	return &out
}

// Brief returns what is sent.
func (a *Attempt) Brief() Attempt {
	out := *a
	out.Reason, out.Problem = valid.Brief(a.Reason), valid.Brief(a.Problem)
	if a.validateLines() != nil {
		out.LastLines = nil
		room := MaxLastBytes / 2
		for i := len(a.LastLines) - 1; i >= 0 && len(out.LastLines) < MaxLastLines; i-- {
			line := valid.Brief(a.LastLines[i])
			if room -= jsonBytes(line); room < 0 {
				break
			}
			out.LastLines = append([]string{line}, out.LastLines...)
		}
	}
	return out
}

// fit drops its texts if they do not fit.
func (a *Attempt) fit(room *int) {
	if n := a.textBytes(); n <= *room {
		*room -= n
		return
	}
	a.LastLines, a.Reason, a.Problem = nil, "", ""
}

// textBytes returns the size of its texts.
func (a *Attempt) textBytes() (n int) {
	n = jsonBytes(a.Reason) + jsonBytes(a.Problem)
	for _, l := range a.LastLines {
		n += jsonBytes(l)
	}
	return n
}

func (a *Attempt) validateLines() error {
	n := 0
	for _, l := range a.LastLines {
		n += jsonBytes(l)
	}
	if len(a.LastLines) > MaxLastLines || n > MaxLastBytes {
		return trimtab.Invalidf("attempt %s: %d last lines of %d bytes: limits %d, %d", a.AttemptID, len(a.LastLines), n, MaxLastLines, MaxLastBytes)
	}
	return nil
}

// Validate checks the name, the state and every number.
func (a *Attempt) Validate() error {
	if err := a.AttemptID.Validate(); err != nil {
		return err
	}
	switch a.State {
	case AttemptQueued, AttemptRefused, AttemptRunning, AttemptFrozen, AttemptEnded:
	default:
		return trimtab.Invalidf("attempt %s: state %.40q", a.AttemptID, a.State)
	}
	if a.Class != "" && a.Class.validate() != nil {
		return a.Class.validate()
	}
	if p := a.Progress; p != nil && !(*p >= 0 && *p <= 1) {
		return trimtab.Invalidf("attempt %s: progress %v: want 0 to 1", a.AttemptID, *p)
	}
	if a.Output < 0 {
		return trimtab.Invalidf("attempt %s: output of %d bytes", a.AttemptID, a.Output)
	}
	if err := valid.Short("attempt "+a.AttemptID.String(), a.Outcome); err != nil {
		return err
	}
	if err := valid.Texts("attempt "+a.AttemptID.String(), a.Reason, a.Problem); err != nil {
		return err
	}
	return a.validateLines()
}

func (c TaskClass) validate() error {
	if c != OversubscribedTask && c != RegularTask {
		return trimtab.Invalidf("class %.40q: want %s or %s", c, OversubscribedTask, RegularTask)
	}
	return nil
}

// Kind returns KindPlacements.
func (p *Placements) Kind() trimtab.Kind { return KindPlacements }

// Key returns pool/host, as for a [trimtab.Holding].
func (p *Placements) Key() string { return p.Pool + "/" + p.Host }

// Validate checks names, order, lease and every task.
func (p *Placements) Validate() error {
	what := "placements on " + p.Host
	if err := namedHere("placements", p.Pool, p.Host); err != nil {
		return err
	}
	switch {
	case p.Time.IsZero():
		return trimtab.Invalidf("%s: no time", what)
	case p.Epoch < 1 || p.Sequence < 1:
		return trimtab.Invalidf("%s: epoch %d, sequence %d: want both from 1", what, p.Epoch, p.Sequence)
	case p.Life < 1 || p.Report < 1:
		return trimtab.Invalidf("%s: they answer report %d of life %d: want both from 1", what, p.Report, p.Life)
	case !(p.Lease > 0 && p.Lease <= MaxPlacementLease):
		return trimtab.Invalidf("%s: lease %v: want more than 0 and at most %v", what, float64(p.Lease), float64(MaxPlacementLease))
	case len(p.Tasks) > MaxAttemptsHere:
		return trimtab.Invalidf("%s: %d tasks, limit %d", what, len(p.Tasks), MaxAttemptsHere)
	}
	seen := make(map[AttemptID]bool, len(p.Tasks))
	var size listSize
	for i := range p.Tasks {
		t := &p.Tasks[i]
		if err := t.validate(); err != nil {
			return err
		}
		if seen[t.AttemptID] {
			return trimtab.Invalidf("%s: %s twice", what, t.AttemptID)
		}
		seen[t.AttemptID] = true
		size.add(&t.Spec)
	}
	return size.validate(what)
}

func (p *Placement) validate() error {
	if err := p.AttemptID.Validate(); err != nil {
		return err
	}
	if err := p.Class.validate(); err != nil {
		return err
	}
	if p.Priority < -MaxPriority || p.Priority > MaxPriority {
		return trimtab.Invalidf("task %s: priority %d: want %d to %d", p.AttemptID, p.Priority, -MaxPriority, MaxPriority)
	}
	if err := valid.Texts("task "+p.AttemptID.String(), p.Kill); err != nil {
		return err
	}
	if err := p.Spec.Validate(); err != nil {
		return fmt.Errorf("task %s: %w", p.AttemptID, err)
	}
	return nil
}

// listSize is the size of a list of tasks.
type listSize struct{ text, parts int }

func (l *listSize) add(s *TaskSpec) {
	text, parts := s.Size()
	l.text, l.parts = l.text+text, l.parts+parts
}

func (l *listSize) validate(what string) error {
	if l.text > MaxListText || l.parts > MaxListParts {
		return trimtab.Invalidf("%s: tasks of %d bytes and %d parts: limits %d and %d", what, l.text, l.parts, MaxListText, MaxListParts)
	}
	return nil
}

// Size returns a task's size in a list: the bytes of its texts and the number of its parts, as
// [MaxListText] and [MaxListParts] count them.
func (s *TaskSpec) Size() (text, parts int) {
	const fixed = 200 // names and numbers
	text, parts = fixed+jsonBytes(s.Dir)+jsonBytes(s.Progress), 6+len(s.Command)+(len(s.Env)+3)/4
	for _, word := range s.Command {
		text += jsonBytes(word) + 3
	}
	for name, value := range s.Env {
		text += jsonBytes(name) + jsonBytes(value) + 6
	}
	return text, parts
}

// jsonBytes returns an upper bound of s's size in JSON.
func jsonBytes(s string) (n int) {
	for _, c := range []byte(s) {
		switch {
		case c < 0x20 || c == '<' || c == '>' || c == '&' || c == 0x7f || c == 0xe2:
			n += 6
		case c == '"' || c == '\\':
			n += 2
		default:
			n++
		}
	}
	return n
}

// Validate checks that a host could run it at all.
func (s *TaskSpec) Validate() error {
	if n := len(s.Command); n < 1 || n > maxArguments {
		return trimtab.Invalidf("command of %d words: want 1 to %d", n, maxArguments)
	}
	if s.Command[0] == "" {
		return trimtab.Invalidf("command: no program")
	}
	for i, word := range s.Command {
		if err := passable(word); err != nil {
			return fmt.Errorf("command: word %d: %w", i+1, err)
		}
	}
	for name, value := range s.Env {
		if name == "" || strings.Contains(name, "=") || passable(name) != nil {
			return trimtab.Invalidf("env %.80q: want a name without =", name)
		}
		if err := passable(value); err != nil {
			return fmt.Errorf("env %.80s: %w", name, err)
		}
	}
	for name, p := range map[string]string{"dir": s.Dir, "progress": s.Progress} {
		if p != "" && (!path.IsAbs(p) || len(p) > 4096 || passable(p) != nil) {
			return trimtab.Invalidf("%s %.80q: want an absolute path", name, p)
		}
	}
	if !(s.Cores > 0 && s.Cores <= maxTaskCores) {
		return trimtab.Invalidf("cores %v: want more than 0 and at most %v", s.Cores, float64(maxTaskCores))
	}
	if !(s.Memory > 0 && s.Memory <= maxTaskMemory) {
		return trimtab.Invalidf("memory %v: want more than 0 bytes and at most %v", s.Memory, float64(maxTaskMemory))
	}
	if err := spanned("wall", s.Wall); err != nil {
		return err
	}
	if text, _ := s.Size(); text > MaxTaskText {
		return trimtab.Invalidf("it has %d bytes of words, limit %d", text, MaxTaskText)
	}
	return nil
}

// passable refuses an argument that cannot be passed to a program, or that JSON would change.
func passable(word string) error {
	switch {
	case len(word) > maxArgument:
		return trimtab.Invalidf("%d bytes, limit %d", len(word), maxArgument)
	case strings.ContainsRune(word, 0):
		return trimtab.Invalidf("%.40q has a byte 0", word)
	case !utf8.ValidString(word):
		return trimtab.Invalidf("%.40q is not UTF-8", word)
	}
	return nil
}

// spanned checks a duration; 0 means none.
func spanned(what string, s trimtab.Seconds) error {
	if !(s >= 0 && s <= maxSpan) {
		return trimtab.Invalidf("%s %v s: want 0 to %v", what, float64(s), float64(maxSpan))
	}
	return nil
}

// Validate checks a job as a person submits it.
func (j *BatchJob) Validate() error {
	if !IsTaskName(j.Name) {
		return trimtab.Invalidf("job %.80q: want 1 to 63 letters, digits, dots, dashes and underscores", j.Name)
	}
	what := "job " + j.Name
	switch {
	case j.Priority < -MaxPriority || j.Priority > MaxPriority:
		return trimtab.Invalidf("%s: priority %d: want %d to %d", what, j.Priority, -MaxPriority, MaxPriority)
	case j.Retries < 0 || j.Retries > MaxRetries:
		return trimtab.Invalidf("%s: %d retries: want 0 to %d", what, j.Retries, MaxRetries)
	case len(j.Tasks) < 1 || len(j.Tasks) > MaxBatchTasks:
		return trimtab.Invalidf("%s: %d tasks: want 1 to %d", what, len(j.Tasks), MaxBatchTasks)
	}
	if err := spanned(what+": queue time-out", j.QueueTimeout); err != nil {
		return err
	}
	seen := make(map[string]bool, len(j.Tasks))
	var size listSize
	for i := range j.Tasks {
		t := &j.Tasks[i]
		if !IsTaskName(t.Name) {
			return trimtab.Invalidf("%s: task %.80q: want 1 to 63 letters, digits, dots, dashes and underscores", what, t.Name)
		}
		if seen[t.Name] {
			return trimtab.Invalidf("%s: task %s twice", what, t.Name)
		}
		seen[t.Name] = true
		if err := t.TaskSpec.Validate(); err != nil {
			return fmt.Errorf("%s: task %s: %w", what, t.Name, err)
		}
		size.add(&t.TaskSpec)
	}
	return size.validate(what)
}

// Kind returns KindJobRequest.
func (r *JobRequest) Kind() trimtab.Kind { return KindJobRequest }

// Key returns the pool.
func (r *JobRequest) Key() string { return r.Pool }

// Validate checks that the fields that the verb needs are set.
func (r *JobRequest) Validate() error {
	if err := valid.Named("request on jobs of pool", r.Pool); err != nil {
		return err
	}
	if r.Time.IsZero() {
		return trimtab.Invalidf("request on jobs: no time")
	}
	if !IsTaskName(r.ID) {
		return trimtab.Invalidf("request on jobs: id %.80q: want 1 to 63 letters, digits, dots, dashes and underscores", r.ID)
	}
	if err := valid.Short("request on jobs", r.By); err != nil {
		return err
	}
	if r.Verb == SubmitJob {
		return r.Job.Validate()
	}
	if !IsTaskName(r.Job.Name) {
		return trimtab.Invalidf("%.20s: job %.80q: want its name", r.Verb, r.Job.Name)
	}
	switch r.Verb {
	case CancelJob:
		return nil
	case GrantTask:
		if err := valid.Named("grant on host", r.Host); err != nil {
			return err
		}
	case RevokeGrant:
	default:
		return trimtab.Invalidf("request on jobs: verb %.20q", r.Verb)
	}
	if !IsTaskName(r.Task) {
		return trimtab.Invalidf("%.20s: task %.80q: want its name", r.Verb, r.Task)
	}
	return nil
}

func namedHere(what, pool, host string) error {
	if err := valid.Named(what+" of pool", pool); err != nil {
		return err
	}
	return valid.Named(what+" on host", host)
}
