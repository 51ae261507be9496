package kubernetes

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/lab"
	"github.com/trimtab/trimtab/planner/behavior"
	"github.com/trimtab/trimtab/planner/replicas"
	"github.com/trimtab/trimtab/sim"
	"github.com/trimtab/trimtab/sim/autoscale"
	"github.com/trimtab/trimtab/sim/kubernetes"
)

// The ways to play trimtab beside that of production.
const (
	Steps  = "trimtab-steps"
	Number = "trimtab-number"
)

// PolicyNames returns the policies that can be played.
func PolicyNames() []string {
	return []string{kubernetes.Trimtab, Steps, Number, kubernetes.HPA, kubernetes.KEDA, kubernetes.VPA, kubernetes.EKS, kubernetes.DPA, kubernetes.Oracle}
}

// Experiment plays several policies with the same seeds.
type Experiment struct {
	lab.Frame
	// Load is one of [LoadNames].
	Load string
	Run  []string
	// Pool is the capacity in cores; 0: unlimited.
	Pool float64
	// Thresholds are the thresholds of hpa and keda to play, in percent; nil: 30 to 90 by 5.
	Thresholds []float64
}

// Summary is the result of one policy, as means over the seeds.
type Summary struct {
	Policy    string  `json:"policy"`
	Missed    float64 `json:"missed_minutes"`
	CoreHours float64 `json:"core_hours"`
	// MissedErr and CoreHoursErr are standard errors; 0 with one seed.
	MissedErr    float64 `json:"missed_minutes_stderr"`
	CoreHoursErr float64 `json:"core_hours_stderr"`
	// Served is the least share of requests in time of any service in any hour; Needed the least
	// ratio of a service's allocation to what its SLO needs, and Worst that service.
	Served float64 `json:"least_hour"`
	Needed float64 `json:"least_share_of_need"`
	Worst  string  `json:"least_share_of_need_service"`
	// Saved is the share of this policy's core-hours that trimtab saves; absent without trimtab.
	Saved *float64 `json:"trimtab_saves,omitempty"`
	// UsedHours and NeededHours are of the core-hours; Resizes is per pod and day, Quiet per service
	// and quiet hour, in which the recorded load stays within a quarter: there are QuietHours; Advice is that of the latest service, in s, of
	// all seeds; absent: one had none. Nodes is a mean.
	UsedHours   float64         `json:"used_core_hours"`
	NeededHours float64         `json:"needed_core_hours"`
	Resizes     float64         `json:"resizes_per_pod_day"`
	Quiet       float64         `json:"resizes_per_quiet_hour"`
	QuietHours  float64         `json:"quiet_hours"`
	Advice      *float64        `json:"first_advice_s,omitempty"`
	Nodes       float64         `json:"nodes"`
	Services    []ServiceResult `json:"services"`
}

// ServiceResult is the result of one service.
type ServiceResult struct {
	kubernetes.Score
	// Threshold is the best threshold in hindsight, in percent; 0: the policy has none.
	Threshold float64 `json:"threshold,omitempty"`
}

// Validate returns an error that is trimtab.ErrInvalid.
func (x *Experiment) Validate() error {
	if err := sim.Known("load", []string{x.Load}, LoadNames()); err != nil {
		return err
	}
	if err := sim.Known("policy", x.Run, PolicyNames()); err != nil {
		return err
	}
	if x.Seeds < 1 || x.Seeds > 10_000 || !(x.Pool >= 0 && x.Pool <= 1e6) {
		return trimtab.Invalidf("simulation: %d seeds, pool %v: want 1 to 10000, and 0 to 1000000 cores", x.Seeds, x.Pool)
	}
	for _, v := range x.Thresholds {
		if !(v >= 1 && v <= 100) {
			return trimtab.Invalidf("simulation: threshold %v: want 1 to 100 percent", v)
		}
	}
	return nil
}

// job is one run.
type job struct {
	policy    string
	threshold float64
	seed      int
	played    kubernetes.Played
}

// jobs returns all runs, threshold by threshold, seed by seed.
func (x *Experiment) jobs() []job {
	var out []job
	for _, name := range x.Run {
		at := []float64{0}
		if name == kubernetes.HPA || name == kubernetes.KEDA {
			at = x.thresholds()
		}
		for _, v := range at {
			for seed := range x.Seeds {
				out = append(out, job{policy: name, threshold: v, seed: seed})
			}
		}
	}
	return out
}

// Runs returns how many runs [Experiment.Play] makes.
func (x *Experiment) Runs() int { return len(x.jobs()) }

func (x *Experiment) thresholds() []float64 {
	if x.Thresholds != nil {
		return x.Thresholds
	}
	var out []float64
	for v := 30.0; v <= 90; v += 5 {
		out = append(out, v)
	}
	return out
}

// Play plays all runs.
func (x *Experiment) Play() ([]Summary, error) {
	if err := x.Validate(); err != nil {
		return nil, err
	}
	jobs, trace := x.jobs(), load(x.Load)
	_, err := x.Frame.Play(len(jobs)/x.Seeds, func(row, k int) error { return x.play(&jobs[row*x.Seeds+k], trace) })
	if err != nil {
		return nil, err
	}
	return x.summarize(jobs), nil
}

func (x *Experiment) play(j *job, trace []float64) error {
	r := x.replay(j, trace)
	got, err := r.Play()
	if err != nil {
		return err
	}
	j.played = got[0]
	return nil
}

// replay returns the two days of the services, of which the second is scored.
func (x *Experiment) replay(j *job, trace []float64) *kubernetes.Replay {
	r := &kubernetes.Replay{Run: []string{j.policy}, Interval: time.Minute, Learn: day * time.Second, Pool: x.Pool, Node: nodeCores, Seed: x.First + uint64(j.seed), Runner: sim.InOrder, Stop: x.Stop}
	size, request := replicas.Size{Min: leastCores, Max: maxCores, Step: 0.01}, podCores
	switch j.policy {
	case Steps:
		r.Run, size.Step = []string{kubernetes.Trimtab}, stepCores
		hour := 3600
		size.Behavior = &behavior.Behavior{Down: &behavior.Rules{Window: &hour}}
	case Number:
		r.Run, size.Fixed = []string{kubernetes.Trimtab}, true
	case kubernetes.VPA, kubernetes.EKS, kubernetes.DPA:
		request = maxCores
	}
	begin := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for _, s := range Services() {
		hpa := kubernetes.HPAWords{Min: 1, Max: maxPods, Targets: []kubernetes.Target{{Type: autoscale.Utilization, Value: j.threshold}}}
		// The target of KEDA is this percentage of the rate that a pod can serve.
		keda := hpa
		keda.Targets = []kubernetes.Target{{Type: autoscale.External, Value: j.threshold / 100 * podCores / s.Cost, Load: true}}
		r.Workloads = append(r.Workloads, kubernetes.Recorded{Service: s.Service, Request: request, Replicas: max(2, int(s.Cores)),
			Points: []kubernetes.Point{{At: begin.Add(time.Minute)}, {At: begin.Add(2 * day * time.Second)}},
			Load:   func(second float64) float64 { return s.Cores / s.Cost * s.at(trace, second) },
			Sizes:  size, Counts: replicas.Count{Min: 1, Max: maxPods},
			HPA: hpa, KEDA: kubernetes.KEDAWords{HPAWords: keda}, VPA: kubernetes.VPAWords{InPlace: true, MinReplicas: 2}})
	}
	return r
}

// summarize picks the best thresholds in hindsight, and averages over seeds.
func (x *Experiment) summarize(jobs []job) []Summary {
	mean := map[string]map[float64][]kubernetes.Score{} // per service, by policy and threshold
	for _, name := range x.Run {
		mean[name] = map[float64][]kubernetes.Score{}
	}
	for i := range jobs {
		j := &jobs[i]
		of := mean[j.policy]
		if of[j.threshold] == nil {
			of[j.threshold] = make([]kubernetes.Score, len(j.played.Workloads))
		}
		for k, s := range j.played.Workloads {
			m := &of[j.threshold][k]
			if m.Service == "" {
				m.Service, m.Served, m.Needed = s.Service, 1, 1
			}
			m.Missed += s.Missed / float64(x.Seeds)
			m.CoreHours += s.CoreHours / float64(x.Seeds)
			m.Served, m.Needed = math.Min(m.Served, s.Served), math.Min(m.Needed, s.Needed)
			for _, to := range [][2]*float64{{&m.Scaled, &s.Scaled}, {&m.Resized, &s.Resized}, {&m.PodDays, &s.PodDays}, {&m.Quiet, &s.Quiet}, {&m.QuietHours, &s.QuietHours},
				{&m.UsedHours, &s.UsedHours}, {&m.NeededHours, &s.NeededHours}} {
				*to[0] += *to[1] / float64(x.Seeds)
			}
		}
	}
	own := mean[kubernetes.Trimtab][0]
	var out []Summary
	for _, name := range x.Run {
		s := Summary{Policy: name, Served: 1, Needed: 2}
		for k := range Services() {
			budget := -1.0
			if own != nil {
				budget = own[k].Missed
			}
			r := best(mean[name], k, budget)
			s.Services = append(s.Services, r)
			s.Served = math.Min(s.Served, r.Served)
			if r.Needed < s.Needed {
				s.Needed, s.Worst = r.Needed, r.Service
			}
		}
		x.total(&s, jobs)
		out = append(out, s)
	}
	for i := range out {
		for k := range out {
			if out[k].Policy == kubernetes.Trimtab && i != k {
				saved := 1 - out[k].CoreHours/out[i].CoreHours
				out[i].Saved = &saved
			}
		}
	}
	return out
}

// total sums the services, run by run.
func (x *Experiment) total(s *Summary, jobs []job) {
	missed, hours := make([]float64, x.Seeds), make([]float64, x.Seeds)
	for i := range jobs {
		j := &jobs[i]
		for k, of := range j.played.Workloads {
			if j.policy == s.Policy && j.threshold == s.Services[k].Threshold {
				missed[j.seed] += of.Missed
				hours[j.seed] += of.CoreHours
			}
		}
	}
	m, h := lab.StatOf(missed), lab.StatOf(hours)
	s.Missed, s.MissedErr, s.CoreHours, s.CoreHoursErr = m.Mean, m.StdErr, h.Mean, h.StdErr
	pods, resized := 0.0, 0.0
	for i := range s.Services {
		r := &s.Services[i]
		s.UsedHours, s.NeededHours, s.QuietHours, s.Quiet = s.UsedHours+r.UsedHours, s.NeededHours+r.NeededHours, s.QuietHours+r.QuietHours, s.Quiet+r.Quiet
		pods, resized = pods+r.PodDays, resized+r.Resized
	}
	if pods > 0 {
		s.Resizes = resized / pods
	}
	if s.QuietHours > 0 {
		s.Quiet /= s.QuietHours
	}
	x.clusters(s, jobs)
}

// clusters adds what is of a run as a whole: where services have thresholds of their own, no run has
// them all, so the mean is over the runs of all thresholds that some service has.
func (x *Experiment) clusters(s *Summary, jobs []job) {
	n, first := 0.0, true
	for i := range jobs {
		j := &jobs[i]
		if j.policy != s.Policy || !slices.ContainsFunc(s.Services, func(r ServiceResult) bool { return r.Threshold == j.threshold }) {
			continue
		}
		n++
		s.Nodes += j.played.Nodes
		if a := j.played.Total.Advice; first || a == nil || s.Advice != nil && *a > *s.Advice {
			s.Advice = a
		}
		first = false
	}
	if n > 0 {
		s.Nodes /= n
	}
}

// best returns the result for the threshold with the fewest core-hours whose missed minutes are
// within the budget, or else for that with the fewest missed minutes.
func best(of map[float64][]kubernetes.Score, k int, budget float64) ServiceResult {
	var out ServiceResult
	found := false
	for _, at := range slices.Sorted(maps.Keys(of)) {
		s := of[at]
		r := ServiceResult{s[k], at}
		better := r.Missed < out.Missed || r.Missed == out.Missed && r.CoreHours < out.CoreHours
		if r.Missed <= budget && found && out.Missed <= budget {
			better = r.CoreHours < out.CoreHours
		}
		if !found || better {
			out, found = r, true
		}
	}
	return out
}
