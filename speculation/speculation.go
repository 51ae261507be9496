// Package speculation has the values by which hosts, the manager of speculative jobs and people
// speak of tasks that run in what services leave: a host's report ([Machine]), the attempts that
// it should have ([Placements]), the hosts to choose from ([Candidates]), a request on a job
// ([JobRequest]) and its state ([JobState]). They follow ROSE (see docs/papers.md). Package
// planner/jobs decides, package actuator/task starts and ends the tasks; nothing is decided here.
package speculation

import (
	"fmt"
	"time"

	"github.com/trimtab/trimtab"
)

// The kinds of the values. A report and the list that answers it repeat, so that a lost one is
// replaced by the next.
const (
	KindMachine    trimtab.Kind = "machine"
	KindPlacements trimtab.Kind = "placements"
	KindCandidates trimtab.Kind = "candidates"
	KindJobRequest trimtab.Kind = "jobrequest"
	KindJobState   trimtab.Kind = "jobstate"
)

// The bounds of speculative work.
const (
	// MaxBatchTasks is how many tasks one job may have, MaxAttemptsHere how many attempts a
	// host's reports and lists may contain.
	MaxBatchTasks   = 10_000
	MaxAttemptsHere = 1000
	// MaxAttempt is the highest number of an attempt.
	MaxAttempt   = 1_000_000
	maxArguments = 1000
	maxArgument  = 128 << 10
)

// AttemptID names one attempt at a task: it is started at most once, on one host.
type AttemptID struct {
	Job     string `json:"job"`
	Task    string `json:"task"`
	Attempt int    `json:"attempt"`
}

// String prints "job/task#attempt".
func (id AttemptID) String() string { return fmt.Sprintf("%s/%s#%d", id.Job, id.Task, id.Attempt) }

// IsTaskName reports whether s may name a job or task: 1 to 63 letters, digits, dots, dashes and
// underscores, first a letter or digit. Names become parts of paths.
func IsTaskName(s string) bool {
	for i, c := range []byte(s) {
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !plain && (i == 0 || c != '.' && c != '-' && c != '_') {
			return false
		}
	}
	return s != "" && len(s) <= 63
}

// Validate returns an error that is ErrInvalid.
func (id AttemptID) Validate() error {
	for _, s := range []string{id.Job, id.Task} {
		if !IsTaskName(s) {
			return trimtab.Invalidf("id %.80q: want 1 to 63 letters, digits, dots, dashes and underscores", s)
		}
	}
	if id.Attempt < 1 || id.Attempt > MaxAttempt {
		return trimtab.Invalidf("attempt %d: want 1 to %d", id.Attempt, MaxAttempt)
	}
	return nil
}

// TaskClass is the group of a host that a task runs in.
type TaskClass string

// The classes. Speculative tasks are oversubscribed: they get what regular ones leave.
const (
	OversubscribedTask TaskClass = "oversubscribed"
	RegularTask        TaskClass = "regular"
)

// TaskSpec is a user's description of a task. Each host decides as which user it runs, and which
// programs may run.
type TaskSpec struct {
	// Command is the program, an absolute path or a name to be found in Env's PATH, and
	// its arguments.
	Command []string          `json:"command"`
	Env     map[string]string `json:"env,omitempty"`
	// Dir is the working directory, an absolute path; "": /.
	Dir string `json:"dir,omitempty"`
	// Cores is the CPU quota, Memory the limit in bytes; both > 0.
	Cores  float64 `json:"cores"`
	Memory float64 `json:"memory"`
	// Progress is a file in which the task tells its progress; "": none.
	Progress string `json:"progress,omitempty"`
	// Wall is the time after which it is killed; 0: none.
	Wall trimtab.Seconds `json:"wall_s,omitempty"`
}

// BatchTask is one task of a job.
type BatchTask struct {
	Name string `json:"name"`
	TaskSpec
}

// BatchJob is a set of tasks that may run speculatively, in resources that are reserved
// or idle.
type BatchJob struct {
	Name string `json:"name"`
	// Priority: the higher one starts first.
	Priority int `json:"priority,omitempty"`
	// Retries is how many further attempts each task has after one that failed or timed out;
	// attempts that a host refused, or that were lost with it, are counted separately.
	Retries int `json:"retries"`
	// QueueTimeout is how long a task waits in a host's queue before it is dispatched again; 0:
	// the planner's.
	QueueTimeout trimtab.Seconds `json:"queue_timeout_s,omitempty"`
	Tasks        []BatchTask     `json:"tasks"`
}

// JobVerb is what a person, or a cluster's resource manager, asks of the job manager.
type JobVerb string

// The verbs.
const (
	SubmitJob JobVerb = "submit"
	CancelJob JobVerb = "cancel"
	// GrantTask reports that the cluster's resource manager granted a task regular resources on a
	// host (ROSE, algorithm 5); RevokeGrant withdraws that.
	GrantTask   JobVerb = "grant"
	RevokeGrant JobVerb = "revoke"
)

// JobRequest asks the job manager of a pool for something.
type JobRequest struct {
	Pool string    `json:"pool"`
	Verb JobVerb   `json:"verb"`
	Time time.Time `json:"time"`
	// ID tells a repeated request from a new one.
	ID string `json:"id"`
	By string `json:"by,omitempty"`
	// Job is what Submit submits, of the others its Name alone is read.
	Job BatchJob `json:"job"`
	// Task and Host are those of a grant.
	Task string `json:"task,omitempty"`
	Host string `json:"host,omitempty"`
}

// Placement is one attempt on a host.
type Placement struct {
	AttemptID
	Class    TaskClass `json:"class"`
	Priority int       `json:"priority,omitempty"`
	Spec     TaskSpec  `json:"spec"`
	// Kill is why it is to end; "": it is to run.
	Kill string `json:"kill,omitempty"`
}

// Placements is the whole list of attempts that one host should have. An attempt that is not in
// it is forgotten if it has ended, and killed if not.
//
// It renews the leases of those in it: until Lease after the host sent the report that it
// answers, by the host's own clock. So both sides know, without a common clock, when an attempt
// on a silent host has ended.
type Placements struct {
	Pool string `json:"pool"`
	Host string `json:"host"`
	// Epoch and Sequence order the lists of a host, as they order plans.
	Epoch    uint64    `json:"epoch"`
	Sequence uint64    `json:"sequence"`
	Time     time.Time `json:"time"`
	// Life and Report are those of the newest report that the sender had: a list for another life
	// is not carried out.
	Life   uint64          `json:"life"`
	Report uint64          `json:"report"`
	Lease  trimtab.Seconds `json:"lease_s"`
	Tasks  []Placement     `json:"tasks"`
}

// AttemptState is where an attempt is.
type AttemptState string

// The states. A refused one was never started and never will be.
const (
	AttemptQueued  AttemptState = "queued"
	AttemptRefused AttemptState = "refused"
	AttemptRunning AttemptState = "running"
	AttemptFrozen  AttemptState = "frozen"
	AttemptEnded   AttemptState = "ended"
)

// Attempt is a host's report of one attempt.
type Attempt struct {
	AttemptID
	State AttemptState `json:"state"`
	Class TaskClass    `json:"class,omitempty"`
	// Started and Ended are by the host's clock, for people.
	Started time.Time `json:"started,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	// Outcome is how it ended: exited, signaled, out of memory, timed out, killed, lost.
	Outcome string `json:"outcome,omitempty"`
	Code    int    `json:"code,omitempty"`
	// Reason is why it was refused or killed, and by whom.
	Reason string `json:"reason,omitempty"`
	// Progress is in [0, 1]; nil: not known.
	Progress *float64 `json:"progress,omitempty"`
	// Output is how many bytes it printed, LastLines the last of them.
	Output    int64    `json:"output_bytes,omitempty"`
	LastLines []string `json:"last_lines,omitempty"`
	// Problem is what hinders the host now; "": nothing.
	Problem string `json:"problem,omitempty"`
}

// Succeeded reports whether it ended by itself, with code 0.
func (a *Attempt) Succeeded() bool {
	return a.State == AttemptEnded && a.Outcome == "exited" && a.Code == 0
}

// MaxSignals bounds the signals of services in one host's report.
const MaxSignals = 64

// ServiceSignal is the state of one signal of a service beside speculative tasks, as its host
// judges it: the fit, how good it is, and how often it was wrong.
type ServiceSignal struct {
	Workload string `json:"workload"`
	Instance string `json:"instance,omitempty"`
	// Signal is cpi or mpki, or the substitute of cpi if it is not counted: run-queue delay, cpu
	// pressure, memory pressure, io pressure, throttled. The value of a substitute is the factor
	// by which waiting makes work take longer.
	Signal string  `json:"signal"`
	Value  float64 `json:"value"`
	// Model gave the boundary: gamma or chi-square if the fit holds, else phases; unknown: too
	// little was seen without tasks. Typical and Boundary are 0 then.
	Model    string  `json:"model"`
	Typical  float64 `json:"typical"`
	Boundary float64 `json:"boundary"`
	Anomaly  bool    `json:"anomaly,omitempty"`
	// Distance is that of the fitted distribution (Kolmogorov, Smirnov) from the measurements;
	// nil: there is no fit yet. Windows is the number of measurements.
	Distance *float64 `json:"ks,omitempty"`
	Windows  uint32   `json:"windows"`
	// FalseAlarms of Judged windows without tasks were called anomalies.
	FalseAlarms uint32 `json:"false_alarms"`
	Judged      uint32 `json:"judged"`
}

// FalseAlarmRate is the share of false alarms; false: nothing was judged yet.
func (s *ServiceSignal) FalseAlarmRate() (rate float64, known bool) {
	if s.Judged == 0 {
		return 0, false
	}
	return float64(s.FalseAlarms) / float64(s.Judged), true
}

// Machine is a host's report to the planner of speculative tasks.
type Machine struct {
	Host string    `json:"host"`
	Pool string    `json:"pool"`
	Time time.Time `json:"time"`
	// Life identifies one run of the part that runs tasks: attempts of a former one have ended.
	// Report counts the reports of a life from 1.
	Life   uint64 `json:"life"`
	Report uint64 `json:"report"`
	// Epoch and Sequence are of the newest Placements that were carried out.
	Epoch    uint64 `json:"epoch,omitempty"`
	Sequence uint64 `json:"sequence,omitempty"`
	// Load is the load level of each dimension, Capacity what the host has of it; what
	// is not in them is not known. Running, Waiting and Regular count tasks.
	Load     map[string]float64 `json:"load,omitempty"`
	Capacity map[string]float64 `json:"capacity,omitempty"`
	Running  int                `json:"running"`
	Waiting  int                `json:"waiting"`
	Regular  int                `json:"regular"`
	// CPI and MPKI are means over the long-running applications; nil: not counted.
	CPI  *float64 `json:"cpi,omitempty"`
	MPKI *float64 `json:"mpki,omitempty"`
	// Signals are those of the services here, those with an anomaly first. They are for people:
	// only the host itself acts on them.
	Signals []ServiceSignal `json:"signals,omitempty"`
	// Blocked is why no task is started; "": nothing is in the way.
	Blocked  string    `json:"blocked,omitempty"`
	Attempts []Attempt `json:"attempts"`
}

// JobState is the state of a job.
type JobState struct {
	Pool      string    `json:"pool"`
	Name      string    `json:"name"`
	Time      time.Time `json:"time"`
	Submitted time.Time `json:"submitted"`
	By        string    `json:"by,omitempty"`
	// State is waiting, running, done, failed, cancelled or forgotten.
	State    string `json:"state"`
	Priority int    `json:"priority,omitempty"`
	// Waiting, Running, Done and Failed count its tasks.
	Waiting int `json:"waiting"`
	Running int `json:"running"`
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	// Tasks are in the order of the job. If there are many, those that did not end well come
	// first and the rest is left out; Omitted counts it.
	Tasks   []TaskState `json:"tasks"`
	Omitted int         `json:"tasks_omitted,omitempty"`
	// Problem is why nothing of it starts; "": nothing is in the way.
	Problem string `json:"problem,omitempty"`
}

// TaskState is the state of one task.
type TaskState struct {
	Name string `json:"name"`
	// State is waiting, placed, running, frozen, done, failed or cancelled.
	State string `json:"state"`
	Host  string `json:"host,omitempty"`
	// Attempts is how many there were, Last what is known of the newest; nil: none yet.
	Attempts int      `json:"attempts"`
	Last     *Attempt `json:"last,omitempty"`
	// Granted is the host on which the cluster's resource manager granted it regular
	// resources.
	Granted string `json:"granted,omitempty"`
	// Next is when it is tried again.
	Next time.Time `json:"next,omitzero"`
	Why  string    `json:"why,omitempty"`
}
