package config

import (
	"time"

	promconfig "github.com/prometheus/common/config"

	"github.com/trimtab/trimtab"
)

// The comments of the fields below are the documentation of the file:
// docs/config.md is printed from them.

// Config is the whole file.
type Config struct {
	// The resources that are shared, and how much of them there is.
	Pool Pool `yaml:"pool"`
	// What is shared for: njc, egalitarian, social, nash, resource-fair, drf or end-to-end (all workloads serve the requests of planning.entry); or your own, sum(EXPRESSION) or min(EXPRESSION) over the workloads, arithmetic on u (the utility), weight, p, slo and m as in utility, >= 0 and not falling with p. A pool of several resources needs drf.
	Objective string `yaml:"objective"`
	// Settings of the objective.
	Planning Planning `yaml:"planning"`
	// Groups of workloads that share as one, from the root down: for njc, resource-fair and drf. A group that is not listed has weight 1.
	Groups []Group `yaml:"groups"`
	// Time between two decisions, 1s to 1h.
	Round time.Duration `yaml:"round" want:"1s to 1h"`
	// How long an allocation holds without renewal; at least one round and 10s. Left out: three rounds, at least 1m.
	Lease time.Duration `yaml:"lease"`
	// How much one round may change.
	Guard Guard `yaml:"guard"`
	// How spans and samples are turned into curves.
	Analyzer Analyzer `yaml:"analyzer"`
	// Where knobs are, and what this host allows plans to do.
	Actuator Actuator `yaml:"actuator"`
	// Hosts that move CPU quotas between rounds.
	Fast Fast `yaml:"fast"`
	// The Kubernetes cluster that knob.kubernetes and match.kubernetes are about. Left out: the one that kubectl, or the pod that trimtab runs in, would reach.
	Kubernetes Kubernetes `yaml:"kubernetes"`
	// Work on what the services of a host leave idle. Left out: none.
	Beside Beside `yaml:"beside"`
	// Where trimtab keeps what must survive a restart.
	Storage Storage `yaml:"storage"`
	// The message bus. Left out: an embedded server.
	NATS NATS `yaml:"nats"`
	// The HTTP server: page, API and /metrics.
	Web Web `yaml:"web"`
	// Receivers of OTLP traces.
	OTLP OTLP `yaml:"otlp"`
	// Receiver of Jaeger spans.
	Jaeger Jaeger `yaml:"jaeger"`
	// Components without spans, whose requests are seen at their sockets instead.
	Sockets Sockets `yaml:"sockets"`
	// What an agent measures of its own host as a whole.
	Measure Measure `yaml:"measure"`
	// The webhook through which Prometheus's Alertmanager asks for a round.
	Alertmanager Alertmanager `yaml:"alertmanager"`
	// The Prometheus server that answers the PromQL of workloads. Also takes every key of Prometheus's HTTP client configuration: basic_auth, authorization, oauth2, tls_config, proxy_url, http_headers, follow_redirects, enable_http2.
	Prometheus Prometheus `yaml:"prometheus"`
	// Where trimtab also sends or records its decisions. Left out: decisions are only in /metrics and on the page.
	Exporters Exporters `yaml:"exporters"`
	// The workloads that share the pool. Left out: services are found from spans and only shown.
	Workloads []Workload `yaml:"workloads"`

	// Namespaces are those whose workloads Workloads has beside the ones with a name in the file.
	Namespaces []Namespace `yaml:"-"`
	// Warnings lists settings that are dubious but usable, in order of position.
	Warnings Errors `yaml:"-"`
}

// Beside is the work beside services. The sections colocate, speculate and batch of older files
// are read as its keys ([renamed]).
type Beside struct {
	// Best-effort jobs: with this section, even empty, workloads of class best-effort are such jobs and no longer share the pool. Left out: they share it as others do.
	Jobs *BesideJobs `yaml:"jobs"`
	// Speculative tasks, which run in what is reserved and idle, on the hosts that have this section; it says what they may do there, whatever a planner asks. Left out: none runs.
	Tasks *BesideTasks `yaml:"tasks"`
	// The job manager of speculative tasks, a part of the planner. Left out: there is one where tasks is set.
	Manager *TaskManager `yaml:"manager"`
}

// Pool has the capacity that the workloads share. Exactly one of CPU and Workers is set when there is a
// knob; it is the first resource.
type Pool struct {
	// Name of the pool, used in subjects and metrics.
	Name string `yaml:"name"`
	// Capacity in cores, for knobs that set a CPU quota.
	CPU float64 `yaml:"cpu" want:"more than 0 and at most 1000000" hint:"write the amount in cores or workers"`
	// Capacity in processes, for knobs that set a number of workers.
	Workers float64 `yaml:"workers" want:"more than 0 and at most 1000000" hint:"write the amount in cores or workers"`
	// Memory that is shared beside it, for knobs that set a memory limit.
	Memory Bytes `yaml:"memory" want:"1MiB to 1024TiB" hint:"write an amount with a unit, such as 16GiB"`
	// Capacities of further resources by name, such as cores: 8. In the cgroups of knobs trimtab sets cores (physical ones, for the workload alone, with all their hardware threads) and weight (as cpu.weight, 100 by default, in both versions of cgroups), through resctrl llc: 11 (ways of the last-level cache) and membw: 100, and frequency and network; others are turned by actuators of yours that join on the bus. One of them alone, without cpu and workers, is shared by any objective; several by drf.
	Resources map[string]float64 `yaml:"resources"`
	// Smallest amount that is moved, in cores or workers. Left out: about a thousandth of the capacity, or one worker.
	Unit float64 `yaml:"unit" want:"more than 0 and at most 1000000" hint:"write the amount in cores or workers"`
	// Largest change of one workload in one round, in cores or workers. Left out: a third of the capacity.
	Step float64 `yaml:"step" want:"more than 0 and at most 1000000" hint:"write the amount in cores or workers"`
}

// Resource returns "cpu" or "workers", or the one resource that is shared without them; "" when the pool has no capacity.
func (p *Pool) Resource() string {
	switch {
	case p.CPU > 0:
		return trimtab.CPU
	case p.Workers > 0:
		return trimtab.Workers
	}
	return p.only()
}

// Capacity returns the capacity of the first resource; 0 when there is none.
func (p *Pool) Capacity() float64 {
	if name := p.only(); name != "" {
		return p.Resources[name]
	}
	return max(p.CPU, p.Workers)
}

// Planning has the parameters of the objectives.
type Planning struct {
	// What it costs to move the whole capacity once, in mean utility, 0 to 10. Higher: fewer moves for a little less utility. Used by social, nash and sum; by end-to-end as a share of the latency, 0.01 where it is left out.
	MoveCost float64 `yaml:"move_cost" want:"0 to 10" hint:"0.05 is the default, 0.01 for end-to-end; 0 moves for the least gain"`
	// How far to trust the upper confidence bound of the performance, (0, 1]. Higher explores more. Left out: 0.95 for social and sum, falling to 0.6 between 240 and 720 reports (a value above 0.6 that is set here falls as well); 0.3 for egalitarian and min, falling to 0.1; 0.1 for nash; 0.15 for end-to-end. njc, resource-fair and drf have their own rule. See docs/objectives.md.
	Optimism float64 `yaml:"optimism" want:"more than 0 and at most 1"`
	// Which load to plan for, (0, 1]: towards 0 the expected load of the round, at 1 the upper confidence bound of the forecast. Left out: 0.5 for social and sum, 0.4 for njc, 0.8 for egalitarian, nash and min, 1 for the others.
	LoadWeight float64 `yaml:"load_weight" want:"more than 0 and at most 1"`
	// For end-to-end: the workload whose requests all others serve. Only its slo and performance count. Spans of the other workloads make trimtab learn faster.
	Entry string `yaml:"entry"`
}

// Group is workloads that share as one.
type Group struct {
	// Path from the root down, parts joined by '/', such as shop/web.
	Path string `yaml:"path"`
	// Share that it is entitled to, relative to its siblings, > 0. Left out: 1.
	Weight float64 `yaml:"weight" want:"more than 0 and at most 1000000" hint:"the default is 1"`
	// What its members get together before anything is shared by weight, as far as they need it, in cores or workers.
	Guarantee float64 `yaml:"guarantee"`
	// The same of the further resources of the pool.
	Guarantees Guarantees `yaml:"guarantees"`
}

// Guarantees are the guaranteed amounts of the resources other than the first.
type Guarantees struct {
	// Memory that is guaranteed, where the pool shares memory.
	Memory Bytes `yaml:"memory"`
	// What is guaranteed of the resources that the pool names, such as llc: 4.
	Resources map[string]float64 `yaml:"resources"`
}

// Guard bounds what the planner may do after every policy.
type Guard struct {
	// Switches the guard off: only to reproduce a paper.
	Off bool `yaml:"off"`
	// Largest fall of one workload in one round, as a share of what it has, (0, 1]. A fall to what the workload is known to need, by what its requests cost, may be larger.
	MaxFall float64 `yaml:"max_fall" want:"more than 0 and at most 1"`
	// Largest share of workloads lowered in one round, (0, 1]; at least one may be. Falls to what a workload is known to need do not count.
	MaxLowered float64 `yaml:"max_lowered" want:"more than 0 and at most 1"`
	// Largest share of the capacity taken away in one round, (0, 1].
	MaxMoved float64 `yaml:"max_moved" want:"more than 0 and at most 1"`
	// trimtab makes no change smaller than this share of the allocation, [0, 1). While the pool is too small for all workloads, it is 0.005 at most.
	DeadBand float64 `yaml:"dead_band" want:"0 to below 1" hint:"0.1 ignores changes under 10%"`
	// A workload changes direction (up, then down, or the reverse) at most once in this time, while its load stays within the forecast of its last move, and no workload newly misses its SLO or has clearly less than it needs; 0s: no limit.
	ReversalWindow time.Duration `yaml:"reversal_window" want:"0s to 24h"`
	// Rounds without usable input after which the declared default may raise a workload, 1 to 1000.
	HoldRounds int `yaml:"hold_rounds" want:"1 to 1000"`
}

// Analyzer says how spans and samples are turned into curves.
type Analyzer struct {
	// Interval of reports to the learner, 100ms to one round. Left out: the largest of 1s, a fifth of a round and 1ms for each workload, but at most 10s and at most one round.
	ReportInterval time.Duration `yaml:"report_interval"`
	// Partitions that traces are spread over, by trace id, 1 to 256.
	Partitions int `yaml:"partitions" want:"1 to 256"`
	// Longest time to wait for spans that are still on their way, of a trace and of a report, 100ms to 10m. How long that is trimtab learns of each sender: OpenTelemetry's SDKs collect spans for 5s before they send them. Requests whose spans take longer than this count nowhere; trimtab says how many those are.
	TraceTimeout time.Duration `yaml:"trace_timeout" want:"100ms to 10m"`
	// Spans kept in memory per partition while their traces are open.
	MaxSpans int `yaml:"max_spans" want:"1000 to 100000000"`
	// Spans kept of one trace.
	MaxTraceSpans int `yaml:"max_trace_spans" want:"1 to 1000000"`
	// Services that are found from spans without being configured.
	MaxDiscovered int `yaml:"max_discovered" want:"0 to 10000"`
	// Confidence of the bounds that decisions are made on, (0, 1).
	Confidence float64 `yaml:"confidence" want:"more than 0 and less than 1" hint:"write 0.95 for 95%"`
}

// Actuator says where knobs are, and what no plan gets past on this host,
// whoever made it.
type Actuator struct {
	// Mount point that cgroup paths are relative to. Left out: found in /proc/self/mountinfo.
	CgroupRoot string `yaml:"cgroup_root"`
	// What trimtab leaves of this host to other programs. If the pool may have knobs on several hosts, or several pools share this host, plans may give out here at most what the host was measured to have, less this; otherwise the declared capacity counts. Of several pools on one host the largest reserve counts.
	Reserve Reserve `yaml:"reserve"`
	// Whether `trimtab apply` may carry out a plan for workloads in mode recommend. The actuator must have received that command itself.
	Apply bool `yaml:"apply"`
	// Longest time that a plan's allocation may hold on this host without renewal, at least lease; a longer lease is cut to it. Left out: lease and 10s.
	MaxLease time.Duration `yaml:"max_lease"`
	// How far ahead of this host's clock a plan may be dated, 1s to 1h.
	ClockSkew time.Duration `yaml:"clock_skew" want:"1s to 1h"`
	// Largest share of its allocation that a workload may lose within fall_window, by all plans together, (0, 1]. It applies in addition to guard.max_fall; guard.off switches it off. A share by weight may lose more while the kernel counts that the limit of the group above is used up.
	MaxFall float64 `yaml:"max_fall" want:"more than 0 and at most 1"`
	// Time that max_fall looks back, 100ms to 1h.
	FallWindow time.Duration `yaml:"fall_window" want:"100ms to 1h"`
	// Largest share of this host's workloads that plans may lower within lowered_window, rounded to whole workloads, at least one, (0, 1]. guard.off switches it off.
	MaxLowered float64 `yaml:"max_lowered" want:"more than 0 and at most 1"`
	// Time that max_lowered looks back, 100ms to 1h.
	LoweredWindow time.Duration `yaml:"lowered_window" want:"100ms to 1h"`
	// Directory of the locks that let only one process at a time set a knob, and of the claims of each pool on this host; all trimtab processes of this host need the same. Left out: /run/trimtab, or where that cannot be written trimtab in XDG_RUNTIME_DIR, or trimtab-UID in the directory for temporary files.
	LockDir string `yaml:"lock_dir"`
}

// Reserve is the part of a host that the pool never gives out. trimtab measures the
// capacity of a host on which it sets limits of cgroups: the cores that are online, in the
// root's cpuset and under the quotas above it, and the memory under the limits above it.
type Reserve struct {
	// Cores that are left to others. Left out: none.
	CPU float64 `yaml:"cpu" want:"0 to 1000000" hint:"write the cores that are left to others, or remove the key"`
	// Memory that is left to others. Left out: none.
	Memory Bytes `yaml:"memory" want:"0B to 1024TiB" hint:"write the memory that is left to others, such as 1GiB, or remove the key"`
}

// Of returns what is left to others of a resource, in its unit.
func (r *Reserve) Of(resource string) float64 {
	switch resource {
	case trimtab.CPU:
		return r.CPU
	case trimtab.Memory:
		return float64(r.Memory)
	}
	return 0
}

// Storage says where trimtab keeps the state that survives a restart.
type Storage struct {
	// Directory of the bus, the journal and the model snapshots; relative to the working directory.
	Path string `yaml:"path"`
	// Most that the bus may store.
	Limit Bytes `yaml:"limit" want:"at least 16MiB" hint:"the bus needs room for plans and estimates: 1GiB is the default"`
}

// NATS is the message bus.
type NATS struct {
	// Server to connect to, such as nats://nats:4222 or tls://nats:4222; several of one cluster separated by commas. Left out: a server is embedded.
	URL string `yaml:"url"`
	// For an agent: where the servers of url take leaf nodes, such as tls://nats:7422; several separated by commas. The agent then runs a NATS server without a store in its own process, which joins them. Left out: the agent is a client of url.
	Leaf string `yaml:"leaf"`
	// Address that the embedded server listens on for stages in other processes. Left out: in process only.
	Listen string `yaml:"listen"`
	// File with NATS user credentials (.creds).
	CredentialsFile string `yaml:"credentials_file"`
	// File that holds a token and nothing else.
	TokenFile string `yaml:"token_file"`
	// The token itself; token_file is better.
	Token Secret `yaml:"token"`
	// TLS towards the server that url names.
	TLS TLS `yaml:"tls"`
	// How many servers of the cluster that url names keep each stream, 1 to 5. Left out: 1.
	Replicas int `yaml:"replicas"`
}

// TLS names PEM files.
type TLS struct {
	// Certificate chain to present.
	CertFile string `yaml:"cert_file"`
	// Its private key.
	KeyFile string `yaml:"key_file"`
	// CA bundle used to verify the peer. For a receiver: clients must present a certificate that it signed.
	CAFile string `yaml:"ca_file"`
}

// Web is the HTTP server.
type Web struct {
	// Address to listen on.
	ListenAddress string `yaml:"listen_address"`
	// File with TLS and basic auth, in the form of Prometheus's exporter toolkit.
	ConfigFile string `yaml:"config_file"`
}

// OTLP is the receivers of traces.
type OTLP struct {
	// Address for gRPC; "off" switches it off.
	GRPC string `yaml:"grpc"`
	// Address for HTTP, where Zipkin's spans are taken too; "off" switches it off.
	HTTP string `yaml:"http"`
	// TLS of both.
	TLS TLS `yaml:"tls"`
	// Largest request that is read, before and after decompression.
	MaxBody Bytes `yaml:"max_body" want:"1KiB to 256MiB" hint:"8MiB is the default"`
}

// Jaeger is the receiver of api_v2 PostSpans.
type Jaeger struct {
	// Address for gRPC; "off" switches it off.
	GRPC string `yaml:"grpc"`
}

// Sockets says what a collector sees through the kernel of its own host.
type Sockets struct {
	// What is traced. Needs Linux 6.3 and, for a collector that is not root, CAP_BPF and CAP_PERFMON; elsewhere a collector says why it does not, and goes on.
	Components []SocketComponent `yaml:"components"`
	// Time after the last byte of an answer at which it has ended, 1ms to 1m.
	Settle time.Duration `yaml:"settle" want:"1ms to 1m"`
}

// Measure says what an agent measures of its host, every 2 s. A quantity that the host does
// not report is missing, with the reason.
type Measure struct {
	// Power that the processor packages draw and may draw (RAPL, which root alone may read), and the frequency at which CPUs run. With beside.jobs, the clock of best-effort jobs follows it.
	Power bool `yaml:"power"`
	// Network interfaces whose bytes and speed are read, such as [eth0]. With beside.jobs, best-effort jobs that have an interface share what services leave of them.
	Links []string `yaml:"links"`
	// Performance counters of each workload with a cgroup, and of the host, every analyzer.report_interval: cycles per instruction, cache misses and references, context switches, page faults, migrations, and the share of time that threads waited for a CPU. Needs root or CAP_PERFMON; slows each switch between processes of different workloads down by some microseconds.
	Perf bool `yaml:"perf"`
	// Further sources, by name, each with what it needs, such as its address: see the table of sources below.
	Sources map[string]string `yaml:"sources"`
}

// SocketComponent is processes of one component. They are looked for every 5 s.
type SocketComponent struct {
	// What its spans get as service.name.
	Name string `yaml:"name"`
	// Name of its processes, as ps shows it.
	Program string `yaml:"program"`
	// Control group that they are in, or below, such as shop.slice/store.service.
	Cgroup string `yaml:"cgroup"`
}

// Alertmanager is the webhook at /webhook/alertmanager of the web server.
type Alertmanager struct {
	// File that holds the bearer token that Alertmanager must send, and nothing else; a changed file is in force at once. Where web.config_file asks for basic auth, it is the password. Left out: every request is refused.
	TokenFile string `yaml:"token_file"`
	// How long an alert keeps a workload from being lowered without being sent again, 1m to 7d. It is over earlier at its endsAt, or once two repetitions are overdue by the repeat interval that its sender was seen to keep. Left out: 5h, since Alertmanager repeats what fires every 4h unless repeat_interval says otherwise.
	MaxHold time.Duration `yaml:"max_hold" want:"1m to 168h"`
}

// Prometheus is the server that answers PromQL.
type Prometheus struct {
	// Base URL, such as http://prometheus:9090. No user or password in it.
	URL string `yaml:"url"`
	// Time between two queries of the same expression, 1s to 1h. Left out: 5s or one round, whichever is shorter, but at least one report interval.
	Interval time.Duration `yaml:"interval" want:"1s to 1h"`
	// Time after which a query is given up, 10ms to interval. Left out: 10s, at most the interval.
	Timeout time.Duration `yaml:"timeout"`
	// TLS, authentication, headers: Prometheus's own form.
	HTTP promconfig.HTTPClientConfig `yaml:",inline"`
}

// Exporters are the surfaces for other systems that are off by default.
type Exporters struct {
	// Pushes metrics and one trace per decision to an OTLP endpoint of yours.
	OTLP ExportOTLP `yaml:"otlp"`
	// Advises KEDA how many pods each workload should have, as an external scaler.
	KEDA ExportKEDA `yaml:"keda"`
	// Tells a Kubernetes cluster what trimtab does and advises, in objects of its own.
	Kubernetes ExportKubernetes `yaml:"kubernetes"`
	// Records the inputs and outputs of all stages in files, for trimtab replay.
	Record Record `yaml:"record"`
}

// ExportOTLP says where decisions are pushed.
type ExportOTLP struct {
	// URL of the endpoint, such as http://collector:4317, https:// for TLS; "env" for that of OTEL_EXPORTER_OTLP_ENDPOINT, which alone switches nothing on. Left out: nothing is pushed. One of trimtab's own receivers is refused.
	Endpoint string `yaml:"endpoint"`
	// grpc or http (protobuf). Left out: that of OTEL_EXPORTER_OTLP_PROTOCOL, else grpc.
	Protocol string `yaml:"protocol" of:"grpc http" hint:"use grpc or http; http sends protobuf"`
	// Headers of every request. Left out: those of OTEL_EXPORTER_OTLP_HEADERS, which keeps secrets out of this file.
	Headers map[string]Secret `yaml:"headers"`
	// TLS towards an https endpoint. Left out: the OTEL_ variables, else the system's authorities.
	TLS TLS `yaml:"tls"`
	// Time between two pushes of metrics, 1s to 1h. Left out: OTEL_METRIC_EXPORT_INTERVAL, else 60s.
	Interval time.Duration `yaml:"interval" want:"1s to 1h"`
	// Time that one request may take, 10ms to 1m. Left out: OTEL_EXPORTER_OTLP_TIMEOUT, else 10s.
	Timeout time.Duration `yaml:"timeout" want:"10ms to 1m"`
}

// ExportKEDA says where KEDA is answered.
type ExportKEDA struct {
	// Address on which KEDA's questions are answered, such as 127.0.0.1:9601. Left out: none is. Where other machines reach it, tls must have all three files.
	ListenAddress string `yaml:"listen_address"`
	// TLS of that address. ca_file has the authorities of KEDA's certificate.
	TLS TLS `yaml:"tls"`
}

// ExportKubernetes says what trimtab writes into a cluster.
type ExportKubernetes struct {
	// Events on the workload: changes (each change, and what was refused or failed), all (also what would be changed, in mode recommend) or off. Left out: changes, from the process that sets its knobs.
	Events string `yaml:"events" of:"off changes all" hint:"write off, changes or all"`
	// Namespace of the ConfigMap trimtab-start-values-POOL, from which a MutatingAdmissionPolicy gives new pods the limits of the others from their start: startValues of the chart. Left out: pods begin with their template.
	StartValues string `yaml:"start_values"`
	// Name of a recommender: the status of each VerticalPodAutoscaler whose spec.recommenders has it is written from what was learnt. Left out: none is.
	Recommender string `yaml:"recommender"`
}

// Record says where the recording goes.
type Record struct {
	// Directory of the segments; relative to the working directory. Left out: nothing is recorded.
	Path string `yaml:"path"`
	// Most that all segments may take on the disk, 1MiB to 1TiB; the oldest go first.
	MaxBytes Bytes `yaml:"max_bytes" want:"1MiB to 1TiB" hint:"1GiB is the default"`
	// Size at which a segment is closed and compressed, 64KiB to 1GiB, at most a quarter of max_bytes.
	SegmentBytes Bytes `yaml:"segment_bytes" want:"64KiB to 1GiB" hint:"16MiB is the default"`
	// Age at which a segment is closed and compressed, 10s to 24h.
	SegmentAge time.Duration `yaml:"segment_age" want:"10s to 24h"`
}
