package config

import (
	"time"

	"github.com/trimtab/trimtab"
)

// The comments of the fields below are the documentation of the file, as in
// config.go.

// Workload is one thing that gets an allocation.
type Workload struct {
	// Name, unique; letters, digits, '.', '_', '-', '/' and ':'. Left out only where match.kubernetes names no more than a namespace.
	Name string `yaml:"name"`
	// latency-critical or best-effort, which only names it unless there is a section beside.jobs. Left out: latency-critical.
	Class trimtab.Class `yaml:"class" of:"latency-critical best-effort"`
	// The objective of its service level (SLO). Needed unless mode is off.
	SLO SLO `yaml:"slo"`
	// Worth of performance p: linear (m), quadratic (m²), sqrt (√m), or an expression of p, slo and m = min(1, p/slo); clamped to [0, 1]. Left out: linear.
	Utility string `yaml:"utility"`
	// Weight of its entitlement, relative to the others in its group, > 0. Twice the weight: twice the share. Left out: 1.
	Weight float64 `yaml:"weight" want:"more than 0 and at most 1000000" hint:"the default is 1"`
	// Group that it belongs to, such as shop or shop/web. Left out: none.
	Group string `yaml:"group"`
	// What it gets before anything is shared by weight, as far as it needs it, in cores or workers: for njc, resource-fair and drf.
	Guarantee float64 `yaml:"guarantee"`
	// The same of the further resources of the pool: for drf.
	Guarantees Guarantees `yaml:"guarantees"`
	// How trimtab finds it in spans, metrics and alerts.
	Match Match `yaml:"match"`
	// PromQL for its load in requests per second: one number, or, of several instances, one for each, with the labels host and instance, as of sum by (host, instance) (rate(...)). Left out: the rate of its spans, which tell of each instance where they name it (host.name, service.instance.id).
	Load string `yaml:"load"`
	// PromQL for its performance in the unit of the SLO, higher is better. Left out: the share of spans under slo.latency.
	Performance string `yaml:"performance"`
	// PromQL for the number of requests that performance was taken over. Left out: where performance is a ratio of rates or increases, such as sum(rate(good[1m])) / sum(rate(all[1m])), or 1 minus one, its denominator over the range.
	Requests string `yaml:"requests"`
	// PromQL for what it has, in the pool's resource. Left out: read from the knob.
	Allocation string `yaml:"allocation"`
	// PromQL for the CPU time that all its instances use together, in cores, such as sum(rate(container_cpu_usage_seconds_total{$match, container="app"}[1m])). Left out: read from its control groups, and not known of pods.
	Usage string `yaml:"usage"`
	// What trimtab uses instead once the performance was missing for three rounds. It may then raise the workload, never lower it.
	Fallback Fallback `yaml:"fallback"`
	// The highest load that it can carry, in requests per second: loadlimit is a share of it. Left out: the highest load seen so far. For a workload that is new to trimtab that is the present load, so no best-effort job runs beside it until its load has been higher.
	MaxLoad float64 `yaml:"max_load"`
	// Thresholds of its components, by service.name, for best-effort jobs beside them, such as db: {loadlimit: 0.8, slacklimit: 0.1}. loadlimit: share of the largest load above which no best-effort job runs beside the component, (0, 1]; left out: where the scatter of its sojourn times begins to grow, once its traffic tells. slacklimit: slack of the SLO, (SLO - tail) / SLO, below which best-effort jobs beside it do not grow, (0, 1]; left out: a margin that follows the misses, or under rhythm-indiscriminate what a search finds.
	Servpods map[string]Servpod `yaml:"servpods"`
	// The limit that trimtab sets. Needed unless mode is off.
	Knob Knob `yaml:"knob"`
	// Of a best-effort job: where it reports its progress.
	Progress Progress `yaml:"progress"`
	// Of a best-effort job: how trimtab predicts the work that the job would lose.
	Predict Predict `yaml:"predict"`
	// off: only watched and shown; recommend: trimtab says what it would set, and writes nothing; act: trimtab sets it. Left out: recommend, of a best-effort job beside.jobs.mode.
	Mode trimtab.Mode `yaml:"mode"`

	// Drafted: the file names its namespace alone.
	Drafted bool `yaml:"-"`
}

// SLO is the objective of a workload: a latency with the fraction of requests
// under it, or a performance in a unit of its own.
type SLO struct {
	// Latency within which requests should be answered.
	Latency time.Duration `yaml:"latency"`
	// Share of the requests that should be answered within latency, (0, 1).
	Fraction float64 `yaml:"fraction"`
	// Instead of latency and fraction: the performance asked for, > 0, in the unit of the performance query.
	Performance float64 `yaml:"performance"`
	// Instead of all of them: a file of OpenSLO, Sloth or Pyrra that says it, relative to this file. It also gives performance and load where the workload has none of its own. trimtab import slo FILE prints what it gives.
	File string `yaml:"file"`
	// Instead of all of them: an object of the cluster that says it, as KIND NAMESPACE/NAME: an SLO of OpenSLO, a PrometheusServiceLevel of Sloth or a ServiceLevelObjective of Pyrra. It is looked up at the start and every 30 s; while it is away, or says what has no meaning here, what it said before holds.
	Object string `yaml:"object"`
	// Which of several objectives of file or object. Left out: the only one.
	Name string `yaml:"name"`

	// Entry names the workload that the SLO is that of, end to end: then what
	// counts, where Latency is set, is Latency over that of Fraction of the
	// requests, and the target is 1.
	Entry string `yaml:"-"`
	// Proposed: trimtab proposes it, from what it saw; without a latency it has not seen enough yet.
	Proposed bool `yaml:"-"`
}

// Target returns the performance asked for: Performance, or Fraction if the SLO has
// a latency; 0: there is no SLO.
func (s *SLO) Target() float64 {
	switch {
	case s.Performance > 0:
		return s.Performance
	case s.Entry != "" && s.Latency > 0:
		return 1
	}
	return s.Fraction
}

// Shares reports whether performance is a share of requests.
func (s *SLO) Shares() bool { return s.Latency > 0 && s.Entry == "" }

// Fallback is what an operator knows of a workload whose performance is not
// measured. The first part that has an answer is used.
type Fallback struct {
	// PromQL for a value in the unit of the performance that can replace it; trimtab learns its curve all the time.
	Proxy string `yaml:"proxy"`
	// CSV file with a recorded curve: the columns allocation_per_load (of the pool's resource for each request per second) and performance, and lower and upper if they are known; read at the start and at every reload.
	Profile string `yaml:"profile"`
	// Amount of the pool's resource that is enough; utility is linear up to it. With slo.performance and without a performance query, trimtab has nothing else to go by, and then also lowers the workload to it, as with a profile.
	Demand float64 `yaml:"demand"`
}

// Servpod has the thresholds that an operator declares for a component.
type Servpod struct {
	// Share of the largest load above which no best-effort job runs beside it, (0, 1]. Left out: where the scatter of its sojourn times begins to grow.
	LoadLimit float64 `yaml:"loadlimit"`
	// Slack of the SLO, (SLO - tail) / SLO, below which best-effort jobs beside it do not grow, (0, 1]. Left out: a margin that follows the misses, or under rhythm-indiscriminate what a search finds.
	SlackLimit float64 `yaml:"slacklimit"`
}

// Match says how a workload is found.
type Match struct {
	// Resource attributes of its spans, each with one value or a list of values; all must match. Left out: service.name is the workload's name.
	Spans map[string]Values `yaml:"spans"`
	// The workload in a Kubernetes cluster. Spans are then found by k8s.namespace.name and k8s.deployment.name (k8s.statefulset.name, k8s.daemonset.name, k8s.rollout.name), $match stands for the labels of its pods, and a knob with bounds and no location of its own sets its limits. With namespace alone, and perhaps selector, in an entry without a name: each Deployment and StatefulSet of the namespace that has no entry of its own is such a workload, named NAMESPACE/NAME, as they come and go; trimtab recommends, and proposes the slo where there is none.
	Kubernetes *KubernetesTarget `yaml:"kubernetes"`
	// Labels of its metrics; $match in a query stands for them.
	Prometheus map[string]string `yaml:"prometheus"`
	// Labels of its alerts; all must match. Left out: the label workload is the workload's name.
	Alert map[string]string `yaml:"alert"`
}

// Components are the values of service.name that its spans may have: its own name where
// the file says nothing else.
func (w *Workload) Components() []string {
	if values := w.Match.Spans["service.name"]; len(values) > 0 {
		return values
	}
	if len(w.Match.Spans) == 0 && w.Match.Kubernetes == nil {
		return []string{w.Name}
	}
	return nil
}

// Knob says which limits of a workload trimtab sets: a cgroup's CPU quota and memory limit, or a
// number of processes.
type Knob struct {
	// Host that has it, by its host name, where several hosts run with this file. Left out: whichever host runs.
	Host string `yaml:"host"`
	// Path of the cgroup below the root, such as shop.slice/checkout.service. With one * in it, as in shop.slice/checkout@*.service, each cgroup that matches is an instance of the workload, named by what the * stands for: at least one character of one part of the path. Behind it stand names that the * must not stand for, each after a space and !, as in machine.slice/libpod-*.scope !test-*; the monitors of podman and CRI-O (conmon) are never instances of a pattern that does not name them. Instances come and go; while there is none, the workload waits. If more than 1000 match on a host, trimtab sets none of the new ones.
	Cgroup string `yaml:"cgroup"`
	// Write the cgroup of a systemd unit even if it is not delegated; systemd may then overwrite the limit. A group is systemd's where systemd runs, not by its name.
	Force bool `yaml:"force"`
	// Workload of a Kubernetes cluster: cpu and memory are the limits of one container of each of its pods, which are its instances, changed in place; resources: {replicas: …} is their number. A pod whose container has no limit is left alone.
	Kubernetes *KubernetesTarget `yaml:"kubernetes"`
	// Bounds in cores, with cgroup or kubernetes; of each instance.
	CPU *CPUBounds `yaml:"cpu"`
	// Number of pods, with kubernetes and cpu: size and number are then one plan, in a pool that shares cores. A pool that shares the number itself bounds it under resources.
	Replicas *Replicas `yaml:"replicas"`
	// Bounds of the memory limit, with cgroup or kubernetes; of each instance. Where the pool shares none, the limit follows what each instance needs; without bounds of anything else its CPU then stays as it is, and no slo is needed. Left out: its memory is left alone.
	Memory *MemoryBounds `yaml:"memory"`
	// Bounds in ways of the last-level cache, with cgroup, where the pool names llc among its resources; of each instance. trimtab sets them through resctrl (Intel RDT, AMD QoS), and says what is missing on a host without. Left out: its cache is left alone.
	LLC *Bounds `yaml:"llc"`
	// Bounds of memory bandwidth, likewise, with membw: percent, or MiB/s where resctrl is mounted with mba_MBps.
	MemBW *Bounds `yaml:"membw"`
	// Bounds on further resources that the pool names, such as cores: {min: 1, max: 4}. With cgroup, frequency is the ceiling of the clock of its CPUs, in MHz. With interface, network is what it may send, in bytes per second. With kubernetes, replicas is the number of pods. Left out: it has no knob for them.
	Resources map[string]Bounds `yaml:"resources"`
	// Network interface that only this workload sends through; trimtab limits its rate.
	Interface *Interface `yaml:"interface"`
	// How many requests it has in service at once, where something before it limits them: a HAProxy, an Envoy or a trimtab gate. When a lease ends or trimtab stops, the limit of before comes back: that of HAProxy or Envoy, or none at a gate.
	Concurrency *Concurrency `yaml:"concurrency"`
	// How many requests to it are admitted per second, beside or in place of concurrency. When a lease ends or trimtab stops, there is no limit.
	Rate *Rate `yaml:"rate"`
	// A local service whose worker processes are started and stopped.
	Process *Process `yaml:"process"`
	// Bounds in processes, with process; of each instance.
	Workers *Bounds `yaml:"workers"`
}

// Declared reports whether there is a knob.
func (k *Knob) Declared() bool { return k.Cgroup != "" || k.Process != nil || k.Kubernetes != nil }

// Bounds returns the bounds that go with the knob; nil when none is declared.
func (k *Knob) Bounds() *Bounds {
	if k.Process != nil {
		return k.Workers
	}
	if name := k.only(); name != "" {
		b := k.Resources[name]
		return &b
	}
	if k.CPU == nil {
		return nil
	}
	return &k.CPU.Bounds
}

// CPUBounds are bounds on CPU time, and how it is bounded.
type CPUBounds struct {
	Bounds `yaml:",inline"`
	// auto, always or never. auto: where the pool is CPU on one host, its workloads are in mode act and their control groups lie below one group that nobody else uses, that group's quota is set to what the pool may give, and shared by weight: each workload has its amount whenever it wants it, and what others leave idle as well, up to its max; elsewhere as always. always: a quota of each workload. never: shared by weight although others use the group, and on each of several hosts. Every workload of the pool says the same. With kubernetes, auto and always: the limit, so that a container without one is left alone; never: the request, which is its weight on the node, and a limit stays, but for Guaranteed pods. Left out: auto.
	Cap string `yaml:"cap"`
}

// The values of [CPUBounds.Cap].
const (
	CapAuto   = "auto"
	CapNever  = "never"
	CapAlways = "always"
)

// Bounds limits an allocation: of each instance, where the knob has several.
type Bounds struct {
	// Least that it may have, > 0; where the cgroup or the directory has a *, each instance, as minAllowed of a VerticalPodAutoscaler holds for each pod. Left out: one unit.
	Min float64 `yaml:"min"`
	// Most that it, or each instance, may have. Left out: the capacity of the pool.
	Max float64 `yaml:"max"`
	// What it, or each instance, may be raised to while nothing is known of it. Left out: it keeps what it has.
	Default float64 `yaml:"default"`
}

// MemoryBounds limits a memory limit. It is never set below what is in use.
type MemoryBounds struct {
	// Least that it, or each instance, may have. Left out: one unit.
	Min Bytes `yaml:"min"`
	// Most that it, or each instance, may have. Left out: the memory of the pool; needed where the pool shares none.
	Max Bytes `yaml:"max"`
	// Part of its need that the limit has above it, such as 0.1, where the pool shares no memory. Left out: 0.07.
	Margin float64 `yaml:"margin"`
	// What it, or each instance, may be raised to while nothing is known of it. Left out: it keeps what it has.
	Default Bytes `yaml:"default"`
	// How often each instance is probed: memory is taken away in small steps, and it is seen whether it comes back, until what is needed is found. It costs what the instance then reads again. Needs cgroups of version 2 with memory.reclaim (Linux 5.19), and no memory in the pool; of a workload with an SLO also all stages in one process, as an agent of its own is not told whether the SLO holds. Left out: never.
	Probe time.Duration `yaml:"probe"`
	// Program that limits its own memory, with cgroup. Left out: none is told.
	Runtime *MemoryRuntime `yaml:"runtime"`
}

// Interface is a network interface of one workload. With one * in name or
// namespace each interface that matches is an instance, named by the text that the *
// matches, as with a cgroup or directory.
type Interface struct {
	// Name of the interface, such as eth0. Of a pair of veth, the end in the container is what it sends through; the end on the host limits what it receives.
	Name string `yaml:"name"`
	// Network namespace that has it: the name of a file in /run/netns, or an absolute path. Left out: that of trimtab.
	Namespace string `yaml:"namespace"`
}

// Process is a local service of worker processes, which a supervisor starts
// and stops: trimtab workers --dir DIR -- COMMAND.
type Process struct {
	// Directory of the supervisor, as given to trimtab workers. With one * in it, as in /run/shop/render-*, each directory that matches and that a supervisor serves is an instance of the workload, named by what the * stands for: at least one character of one part of the path. No link is followed in or behind that part. Instances come and go; one that ends gets the number back that it had before trimtab changed it, and while there is none, the workload waits. If more than 1000 directories match on a host, supervised or not, trimtab sets none of the new ones.
	Dir string `yaml:"dir"`
}
