package colocate

import (
	_ "embed" // the trace
	"strconv"
	"strings"
)

//go:embed clarknet.txt
var clarkNet string

// ClarkNet is the load of the paper's production runs: requests per minute of the
// first five days of ClarkNet-HTTP (28 August to 1 September 1995, Internet Traffic
// Archive), which a run plays in its whole length.
func ClarkNet() []float64 {
	var out []float64
	for _, line := range strings.Fields(clarkNet) {
		v, err := strconv.ParseFloat(line, 64)
		if err == nil {
			out = append(out, v)
		}
	}
	return out
}

// Names of the built-in loads.
const (
	Constant   = "constant"
	Production = "clarknet"
)

// BuiltIn returns the environment of the paper's evaluation: the five services of
// table 1 that are not microservices, each on machines of its own, and the types of
// best-effort jobs there. Its load is Constant, the levels of figures 13 to 26, or
// Production.
func BuiltIn(load string) *Environment {
	e := &Environment{Name: "rhythm, " + load, Jobs: jobTypes(), Load: Load{Levels: []float64{0.05, 0.25, 0.45, 0.65, 0.85}, Noise: 0.02}}
	if load == Production {
		e.Load = Load{Trace: ClarkNet(), Noise: 0.02}
	}
	e.Services = []Service{eCommerce(), redis(), solr(), elgg(), elasticsearch()}
	for i := range e.Services {
		for j := range e.Services[i].Components {
			c := &e.Services[i].Components[j]
			c.Host = e.Services[i].Name + "-" + c.Name
			// The paper's machines: 40 cores, 256 GB; 20 ways and 10 Gbit/s are assumed.
			e.Hosts = append(e.Hosts, Host{Name: c.Host, Cores: 40, Ways: 20, KeptWays: 2, Memory: 256 << 30, Network: 1.25e9})
		}
	}
	return e
}

// Sensitivities to one resource each. Those to llc and membw are fitted to recorded
// runs by TestTheFrozenSensitivitiesAreThoseOfTheRecordedRuns:
//
//   - keyValue: memcached beside iBench (memcached-interference, mean of groups a and
//     b). Slowdown is the saturated rate without over that with interference, less 1;
//     pauses are fitted to the p95 and p99 from 5,000 to 30,000 requests/s.
//   - the others: run times beside NPB SP (perf-counters-corun), which had 0.94 of the
//     cache and moved 0.59 of the bandwidth: (run time − 1) = a (0.94² + 0.59²), with
//     the same a for both resources (assumed: the runs do not tell them apart).
//     store is canneal, search fluidanimate, script freqmine, light kmeans, proxy nn.
//     Which component is like which program is assumed, by working set.
//
// Those to cpu, other cores of the socket being busy, are such that the p99 of Redis
// grows by 113.1% for the master and 22% for the slave on average (section 2.1);
// MySQL's growth is 35.1 points over Tomcat's there, and Tomcat's is taken to be the
// slave's. Others and those to network are assumed.
func keyValue(share float64) map[string]Sensitivity {
	return map[string]Sensitivity{
		"llc":   {Slowdown: 0.445 * share, Stall: 0.056 * share, Pause: 0.00084},
		"membw": {Slowdown: 0.080 * share, Stall: 0.0039 * share, Pause: 0.00092},
	}
}

// like is a program that ran beside SP.
func like(slowdown, cpu float64) map[string]Sensitivity {
	return map[string]Sensitivity{"llc": {Slowdown: slowdown}, "membw": {Slowdown: slowdown}, "cpu": {Slowdown: cpu}, "network": {Slowdown: 0.02}}
}

// The slowdowns of programs beside SP, and what is assumed of the cpu.
const (
	store, search, script, light, proxy = 0.824, 0.208, 0.075, 0.038, 0.032
	assumedCPU                          = 0.3
)

func with(m map[string]Sensitivity, resource string, s Sensitivity) map[string]Sensitivity {
	m[resource] = s
	return m
}

const gib = 1 << 30

// The services. Structure, maximum load and number of containers are those of table
// 1; that a component has so many of the servers, cores and bytes, and its service
// time, are assumed, chosen so that the p99 at the maximum load is near the paper's
// SLO, the bottleneck is the component that the paper calls so, and, of E-commerce,
// figure 8 holds: HAProxy has less than 5% of the latency, and MySQL less than Tomcat
// at low load and more at high load. Coefficients of variation are 0.47 of web tiers
// (Online Boutique at low load, kth-load-latency trace 1), others are assumed.
func eCommerce() Service {
	return Service{Name: "e-commerce", MaxLoad: 1300, Components: []Component{
		{Name: "haproxy", Mean: 0.00108, CV: 0.5, Servers: 4, Cores: 4, Bandwidth: 0.02, Memory: 8 * gib, Network: 60e6, Sensitivity: like(proxy, assumedCPU), Origin: "sensitivity: nn beside SP"},
		{Name: "tomcat", Mean: 0.0052, CV: 0.47, Servers: 8, Cores: 16, Bandwidth: 0.10, Memory: 32 * gib, Network: 60e6, Sensitivity: like(search, 0.266), Origin: "sensitivity: fluidanimate beside SP; cpu: section 2.1"},
		{Name: "amoeba", Mean: 0.0012, CV: 0.3, Servers: 4, Cores: 4, Bandwidth: 0.02, Memory: 8 * gib, Network: 30e6, Sensitivity: like(proxy, assumedCPU), Origin: "sensitivity: nn beside SP"},
		{Name: "mysql", Mean: 0.00277, CV: 0.6, Servers: 4, Cores: 16, Bandwidth: 0.15, Memory: 64 * gib, Network: 30e6, Sensitivity: like(store, 0.314), Origin: "sensitivity: canneal beside SP; cpu: section 2.1"},
	}, Call: Call{Component: "haproxy", Stages: [][]Call{{{Component: "tomcat", Stages: [][]Call{{{Component: "amoeba", Stages: [][]Call{{{Component: "mysql"}}}}}}}}}}}
}

func redis() Service {
	return Service{Name: "redis", MaxLoad: 86_000, Components: []Component{
		{Name: "master", Mean: 10.4e-6, CV: 0.5, Floor: 100e-6, Servers: 1, Cores: 12, Bandwidth: 0.15, Memory: 64 * gib, Network: 200e6,
			Sensitivity: with(keyValue(1), "cpu", Sensitivity{Slowdown: 0.352}), Origin: "sensitivity: memcached beside iBench; cpu: section 2.1; floor: p50 at 5,000/s"},
		{Name: "slave", Mean: 15e-6, CV: 0.5, Floor: 50e-6, Servers: 4, Cores: 12, Bandwidth: 0.12, Memory: 64 * gib, Network: 150e6,
			Sensitivity: with(keyValue(22/113.1), "cpu", Sensitivity{Slowdown: 0.737}), Origin: "sensitivity: of the master, by the ratio of section 2.1"},
	}, Call: Call{Component: "master", Stages: [][]Call{{{Component: "slave"}, {Component: "slave"}}}}}
}

func solr() Service {
	return Service{Name: "solr", MaxLoad: 400, Components: []Component{
		{Name: "apache-solr", Mean: 0.0132, CV: 0.6, Servers: 6, Cores: 20, Bandwidth: 0.20, Memory: 64 * gib, Network: 60e6, Sensitivity: like(search, assumedCPU), Origin: "sensitivity: fluidanimate beside SP"},
		{Name: "zookeeper", Mean: 0.002, CV: 0.5, Servers: 2, Cores: 4, Bandwidth: 0.02, Memory: 8 * gib, Network: 10e6, Sensitivity: like(light, assumedCPU), Origin: "sensitivity: kmeans beside SP"},
	}, Call: Call{Component: "apache-solr", Stages: [][]Call{{{Component: "zookeeper"}}}}}
}

func elgg() Service {
	return Service{Name: "elgg", MaxLoad: 200, Components: []Component{
		{Name: "nginx-php", Mean: 0.0255, CV: 0.47, Servers: 6, Cores: 16, Bandwidth: 0.08, Memory: 16 * gib, Network: 40e6, Sensitivity: like(script, assumedCPU), Origin: "sensitivity: freqmine beside SP"},
		{Name: "memcached", Mean: 0.0015, CV: 0.5, Servers: 1, Cores: 4, Bandwidth: 0.05, Memory: 32 * gib, Network: 40e6,
			Sensitivity: with(keyValue(1), "cpu", Sensitivity{Slowdown: assumedCPU}), Origin: "sensitivity: memcached beside iBench"},
		{Name: "mysql", Mean: 0.021, CV: 0.6, Servers: 3, Cores: 8, Bandwidth: 0.10, Memory: 64 * gib, Network: 20e6, Sensitivity: like(store, assumedCPU), Origin: "sensitivity: canneal beside SP"},
	}, Call: Call{Component: "nginx-php", Stages: [][]Call{{{Component: "memcached"}}, {{Component: "mysql", Share: 0.6}}}}}
}

func elasticsearch() Service {
	return Service{Name: "elasticsearch", MaxLoad: 750, Components: []Component{
		{Name: "index", Mean: 0.0059, CV: 0.6, Servers: 5, Cores: 20, Bandwidth: 0.20, Memory: 64 * gib, Network: 60e6, Sensitivity: like(store, assumedCPU), Origin: "sensitivity: canneal beside SP"},
		{Name: "kibana", Mean: 0.0037, CV: 0.47, Servers: 4, Cores: 8, Bandwidth: 0.04, Memory: 16 * gib, Network: 60e6, Sensitivity: like(script, assumedCPU), Origin: "sensitivity: freqmine beside SP"},
	}, Call: Call{Component: "kibana", Stages: [][]Call{{{Component: "index"}}}}}
}

// jobTypes are those of table 1. Bandwidth is what a core of a program of
// perf-counters-corun moved alone, over a sixteenth of the 48.6 GB/s that the socket
// moved at most; the share of the cache is what it held of 40 MB, or 1 of one that
// went through all of it. Which program stands for which type is assumed, as are
// lengths, checkpoints, gains from cache, and memory. TensorFlow-Bench and
// ImageClassify are one group in the paper's figures, as wordcount and Spark-Bench.
func jobTypes() []JobType {
	return []JobType{
		{Name: "stream-llc", Progress: Unpredictable, Length: 300, Busy: 1, Bandwidth: 0.46, Cache: 1, Gain: 0.5, Memory: gib, Origin: "CG"},
		{Name: "stream-dram", Progress: Unpredictable, Length: 300, Busy: 1, Bandwidth: 1.63, Cache: 1, Gain: 0.1, Memory: 2 * gib, Origin: "MG"},
		{Name: "cpu-stress", Progress: Unpredictable, Length: 300, Busy: 1, Bandwidth: 0, Cache: 0.03, Gain: 0, Memory: gib, Origin: "EP"},
		{Name: "lstm", Progress: Training, Length: 600, Checkpoint: 300, Busy: 0.95, Bandwidth: 0.14, Cache: 0.98, Gain: 0.15, Memory: 2 * gib, Origin: "fluidanimate"},
		{Name: "imageclassify", Progress: Training, Length: 900, Checkpoint: 600, Busy: 0.9, Bandwidth: 0.41, Cache: 1, Gain: 0.2, Memory: 2 * gib, Origin: "BT"},
		{Name: "spark-bench", Progress: DataParallel, Length: 400, Checkpoint: 60, Busy: 0.8, Bandwidth: 0.35, Cache: 0.98, Gain: 0.2, Memory: 2 * gib, Origin: "DC"},
		{Name: "scimark", Progress: Unpredictable, Length: 600, Busy: 1, Bandwidth: 0.48, Cache: 1, Gain: 0.3, Memory: gib, Origin: "LU"},
	}
}
