package speculation

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/valid"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func aSpec() TaskSpec { return TaskSpec{Command: []string{"/bin/true"}, Cores: .5, Memory: 1 << 20} }

func anAttempt(task string) Attempt {
	return Attempt{AttemptID: AttemptID{"j", task, 1}, State: AttemptRunning, Class: OversubscribedTask}
}

func aMachine() *Machine {
	return &Machine{Host: "h", Pool: "p", Time: noon, Life: 1, Report: 1, Attempts: []Attempt{anAttempt("t")}}
}

func somePlacements() *Placements {
	return &Placements{Pool: "p", Host: "h", Epoch: 1, Sequence: 1, Time: noon, Life: 1, Report: 1, Lease: 30,
		Tasks: []Placement{{AttemptID: AttemptID{"j", "t", 1}, Class: RegularTask, Spec: aSpec()}}}
}

func aJob() BatchJob { return BatchJob{Name: "j", Tasks: []BatchTask{{"t", aSpec()}}} }

func aRequest(v JobVerb) *JobRequest {
	return &JobRequest{Pool: "p", Verb: v, Time: noon, ID: "1", Job: aJob(), Task: "t", Host: "h"}
}

func aState() *JobState {
	return &JobState{Pool: "p", Name: "j", Time: noon, State: StateRunning, Running: 1, Tasks: []TaskState{{Name: "t", State: StateRunning}}}
}

func TestValuesOfSpeculativeWorkAreCheckedInEveryField(t *testing.T) {
	bad := math.NaN()
	spec := func(change func(*TaskSpec)) trimtab.Value {
		p := somePlacements()
		change(&p.Tasks[0].Spec)
		return p
	}
	attempt := func(change func(*Attempt)) trimtab.Value {
		m := aMachine()
		change(&m.Attempts[0])
		return m
	}
	machine := func(change func(*Machine)) trimtab.Value { m := aMachine(); change(m); return m }
	list := func(change func(*Placements)) trimtab.Value { p := somePlacements(); change(p); return p }
	job := func(change func(*BatchJob)) trimtab.Value { r := aRequest(SubmitJob); change(&r.Job); return r }
	state := func(change func(*JobState)) trimtab.Value { s := aState(); change(s); return s }
	for _, good := range []trimtab.Value{aMachine(), somePlacements(), aRequest(SubmitJob), aRequest(CancelJob), aRequest(GrantTask), aRequest(RevokeGrant), aState(), &Candidates{"p", []byte{1}}} {
		if err := good.Validate(); err != nil {
			t.Errorf("%s: %v", good.Kind(), err)
		}
	}
	for what, v := range map[string]trimtab.Value{
		"no pool":                  machine(func(m *Machine) { m.Pool = "" }),
		"no host":                  machine(func(m *Machine) { m.Host = "" }),
		"no life":                  machine(func(m *Machine) { m.Life = 0 }),
		"no number":                machine(func(m *Machine) { m.Report = 0 }),
		"load not a number":        machine(func(m *Machine) { m.Load = map[string]float64{"cpu": bad} }),
		"load below nothing":       machine(func(m *Machine) { m.Load = map[string]float64{"cpu": -1} }),
		"CPI not a number":         machine(func(m *Machine) { m.CPI = &bad }),
		"more signals than may be": machine(func(m *Machine) { m.Signals = make([]ServiceSignal, MaxSignals+1) }),
		"a signal of nobody":       machine(func(m *Machine) { m.Signals = []ServiceSignal{{Signal: "cpi"}} }),
		"a signal below nothing":   machine(func(m *Machine) { m.Signals = []ServiceSignal{{Workload: "w", Value: -1}} }),
		"a distance over 1":        machine(func(m *Machine) { m.Signals = []ServiceSignal{{Workload: "w", Distance: new(1.5)}} }),
		"more alarms than windows": machine(func(m *Machine) { m.Signals = []ServiceSignal{{Workload: "w", FalseAlarms: 2, Judged: 1}} }),
		"fewer than none":          machine(func(m *Machine) { m.Waiting = -1 }),
		"an attempt twice":         machine(func(m *Machine) { m.Attempts = append(m.Attempts, m.Attempts[0]) }),
		"a job that climbs":        attempt(func(a *Attempt) { a.Job = "../x" }),
		"attempt 0":                attempt(func(a *Attempt) { a.Attempt = 0 }),
		"a state nobody knows":     attempt(func(a *Attempt) { a.State = "gone" }),
		"a class nobody knows":     attempt(func(a *Attempt) { a.Class = "first" }),
		"progress above all":       attempt(func(a *Attempt) { p := 1.1; a.Progress = &p }),
		"progress not a number":    attempt(func(a *Attempt) { a.Progress = &bad }),
		"many last lines":          attempt(func(a *Attempt) { a.LastLines = make([]string, MaxLastLines+1) }),
		"long last lines":          attempt(func(a *Attempt) { a.LastLines = []string{strings.Repeat("x", MaxLastBytes+1)} }),
		"no epoch":                 list(func(p *Placements) { p.Epoch = 0 }),
		"no lease":                 list(func(p *Placements) { p.Lease = 0 }),
		"an endless lease":         list(func(p *Placements) { p.Lease = trimtab.Seconds(math.Inf(1)) }),
		"no answer":                list(func(p *Placements) { p.Report = 0 }),
		"a task twice":             list(func(p *Placements) { p.Tasks = append(p.Tasks, p.Tasks[0]) }),
		"a task without class":     list(func(p *Placements) { p.Tasks[0].Class = "" }),
		"no program":               spec(func(s *TaskSpec) { s.Command = nil }),
		"an empty program":         spec(func(s *TaskSpec) { s.Command = []string{""} }),
		"a byte 0":                 spec(func(s *TaskSpec) { s.Command = []string{"/bin/true", "a\x00b"} }),
		"no text":                  spec(func(s *TaskSpec) { s.Command = []string{"/bin/true", "\xff"} }),
		"a variable without name":  spec(func(s *TaskSpec) { s.Env = map[string]string{"": "x"} }),
		"a name with =":            spec(func(s *TaskSpec) { s.Env = map[string]string{"a=b": "x"} }),
		"a relative directory":     spec(func(s *TaskSpec) { s.Dir = "x" }),
		"no cores":                 spec(func(s *TaskSpec) { s.Cores = 0 }),
		"cores not a number":       spec(func(s *TaskSpec) { s.Cores = bad }),
		"endless memory":           spec(func(s *TaskSpec) { s.Memory = math.Inf(1) }),
		"a negative time":          spec(func(s *TaskSpec) { s.Wall = -1 }),
		"many words":               spec(func(s *TaskSpec) { s.Command = make([]string, maxArguments+1) }),
		"long words":               spec(func(s *TaskSpec) { s.Command = []string{"a", strings.Repeat("\x01", MaxTaskText/6)} }),
		"a job without tasks":      job(func(j *BatchJob) { j.Tasks = nil }),
		"two tasks of a name":      job(func(j *BatchJob) { j.Tasks = append(j.Tasks, j.Tasks[0]) }),
		"retries without end":      job(func(j *BatchJob) { j.Retries = MaxRetries + 1 }),
		"a name of a path":         job(func(j *BatchJob) { j.Name = "a/b" }),
		"a verb nobody knows":      aRequest("delete"),
		"a state of no job":        state(func(s *JobState) { s.Name = "" }),
		"a job's state unknown":    state(func(s *JobState) { s.State = "frozen" }),
		"a task's state unknown":   state(func(s *JobState) { s.Tasks[0].State = "lost" }),
		"a count below nothing":    state(func(s *JobState) { s.Done = -1 }),
		"a message without a byte": &Candidates{Pool: "p"},
		"a message too long":       &Candidates{"p", make([]byte, MaxCandidates+1)},
	} {
		if err := v.Validate(); !errors.Is(err, trimtab.ErrInvalid) {
			t.Errorf("%s: %v, want invalid", what, err)
		}
	}
}

// A job that is taken can be sent as it is, and its tasks as a list of a host.
func TestWhatIsInBoundsFitsIntoAMessage(t *testing.T) {
	const message, elements = 4 << 20, 1 << 16 // of package codec
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.SampledFrom([]string{"a", "\x01\x02", `"\"`, "<&>", "é\u2028", strings.Repeat("x", 300)})
		job := aJob()
		job.Tasks = nil
		command := append([]string{"/bin/true"}, rapid.SliceOfN(word, 0, 20).Draw(t, "command")...)
		env := rapid.MapOfN(word, word, 0, 5).Draw(t, "env")
		for i := range rapid.IntRange(1, MaxBatchTasks).Draw(t, "tasks") {
			s := aSpec()
			s.Command, s.Env = command, env
			job.Tasks = append(job.Tasks, BatchTask{fmt.Sprintf("task-%05d", i), s})
		}
		if job.Validate() != nil {
			return
		}
		b, err := json.Marshal(&JobRequest{Job: job})
		if err != nil || len(b) > message {
			t.Fatalf("%d tasks: %d bytes, %v", len(job.Tasks), len(b), err)
		}
		if n := strings.Count(string(b), ","); len(job.Tasks) > 1000 && n > 4*elements {
			t.Fatalf("%d tasks: %d parts", len(job.Tasks), n)
		}
	})
}

func TestWhatIsMadeBriefIsValidAndFits(t *testing.T) {
	lines := make([]string, 100)
	for i := range lines {
		lines[i] = strings.Repeat("é\x01", 400)
	}
	a := Attempt{State: AttemptEnded, LastLines: lines, Reason: strings.Repeat("\x01", valid.MaxText+1)}
	m, s := aMachine(), aState()
	m.Attempts, s.Tasks = nil, nil
	for i := range MaxAttemptsHere {
		a.AttemptID = AttemptID{"j", fmt.Sprint("t", i), 1}
		m.Attempts = append(m.Attempts, a)
	}
	for i := range 2 * MaxTaskStates {
		state := StateDone
		if i == 2*MaxTaskStates-1 {
			state = StateFailed
		}
		last := m.Attempts[i%MaxAttemptsHere]
		s.Tasks = append(s.Tasks, TaskState{Name: fmt.Sprint("t", i), State: state, Last: &last})
	}
	for _, v := range []trimtab.Value{m.Brief(), s.Brief()} {
		b, err := json.Marshal(v)
		if err := errors.Join(err, v.Validate()); err != nil || len(b) > 4<<20 {
			t.Errorf("%s: %d bytes, %v", v.Kind(), len(b), err)
		}
	}
	brief := s.Brief()
	if n := len(brief.Tasks); n != MaxTaskStates || brief.Tasks[n-1].State != StateFailed || brief.Omitted != MaxTaskStates {
		t.Errorf("%d tasks, %d left out, the last is %+v", n, brief.Omitted, brief.Tasks[n-1].State)
	}
	if got := m.Brief().Attempts[0].LastLines; len(got) == 0 || len(s.Tasks[0].Last.LastLines) != 100 {
		t.Errorf("last lines %d", len(got))
	}
}
