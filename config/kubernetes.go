package config

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// The comments of the fields below are the documentation of the file, as in
// config.go.

// Kubernetes configures the cluster whose workloads trimtab limits.
type Kubernetes struct {
	// A kubeconfig file, as kubectl reads it. Left out: the service account of the pod that trimtab runs in, and outside of a pod the file that kubectl would take.
	Kubeconfig string `yaml:"kubeconfig"`
	// Context in that file. Left out: its current one.
	Context string `yaml:"context"`
	// Namespaces that are watched. Left out: those that workloads name.
	Namespaces []string `yaml:"namespaces"`
	// Namespace of trimtab's own in which the journal is kept, as the ConfigMap trimtab-journal-POOL: for a trimtab that the cluster may start on another node. Left out: in storage.path.
	Journal string `yaml:"journal"`
	// How long a knob that another program or a person set is left alone, 1m to 24h; then that value is its baseline. A second time within an hour it is only recommended until `trimtab resume`.
	ForeignHold time.Duration `yaml:"foreign_hold" want:"1m to 24h"`
	// How long a node may defer a resize until it is taken back, 5s to 1h: until then it takes room from others.
	DeferTimeout time.Duration `yaml:"defer_timeout" want:"5s to 1h"`
	// Field managers (metadata.managedFields) whose values trimtab may change although they set them last: a controller that is gone, or a tool of yours that deploys. Left out: none.
	TakeOver []string `yaml:"take_over"`
	// Where the number of pods goes when a lease ends or trimtab stops: up to what it was before (upwards), or down to it, too, as disruption budgets allow (baseline).
	Restore string `yaml:"restore"`
	// Where the memory that containers use is read, for workloads with knob.memory where the pool shares none. metrics: from the resource metrics API, into which metrics-server puts the working set each 15 s. kubelet: from /stats/summary of each node, with anonymous memory, swap and pressure, too; trimtab must reach port 10250 of nodes and have the right to get nodes/stats. prometheus: from the series of cAdvisor at prometheus.url; limits are then raised in place and not lowered. Kills are told by the status of pods in each case.
	Memory string `yaml:"memory"`
	// Authorities that sign the certificates of kubelets, a file. Left out: those of the API server.
	KubeletCAFile string `yaml:"kubelet_ca_file"`
}

// The values of kubernetes.memory.
const (
	MemoryByMetrics    = "metrics"
	MemoryByKubelet    = "kubelet"
	MemoryByPrometheus = "prometheus"
)

// KubernetesTarget names a workload of a cluster.
type KubernetesTarget struct {
	// Namespace of the workload.
	Namespace string `yaml:"namespace"`
	// Name of a Deployment.
	Deployment string `yaml:"deployment"`
	// Name of a StatefulSet.
	StatefulSet string `yaml:"statefulset"`
	// Name of a DaemonSet: the sizes of its pods are one for all nodes, and their number is that of nodes.
	DaemonSet string `yaml:"daemonset"`
	// Name of a Rollout of Argo.
	Rollout string `yaml:"rollout"`
	// Labels of workloads, in match.kubernetes without deployment and statefulset: only those that have them. Left out: all of the namespace.
	Selector map[string]string `yaml:"selector"`
	// Container of its pods. Left out: the only one.
	Container string `yaml:"container"`
	// Whether containers without a limit get one. It cannot be taken away again but with the pod: to put it back, the limit is set to what the node has.
	AddLimits bool `yaml:"add_limits"`
	// keep or follow: whether the request of a pod of class Burstable stays as it is, so that the limit cannot fall below it, or moves with the limit, in the ratio of the template. A Guaranteed pod's always moves. Left out: keep.
	Requests string `yaml:"requests"`
}

// The values of knob.kubernetes.requests.
const (
	RequestsKeep   = "keep"
	RequestsFollow = "follow"
)

// kinds are the kinds of workloads, with where each is named.
func (t *KubernetesTarget) kinds() []kindOf {
	return []kindOf{{"Deployment", &t.Deployment}, {"StatefulSet", &t.StatefulSet}, {"DaemonSet", &t.DaemonSet}, {"Rollout", &t.Rollout}}
}

// kindOf is a kind of workloads, and the name of one.
type kindOf struct {
	kind string
	name *string
}

// key is that of the file.
func (k kindOf) key() string { return strings.ToLower(k.kind) }

// Workload returns kind and name; "" where it has none.
func (t *KubernetesTarget) Workload() (kind, name string) {
	for _, k := range t.kinds() {
		if *k.name != "" {
			return k.kind, *k.name
		}
	}
	return "Deployment", ""
}

// Kinds lists the kinds of workloads that are named.
func (c *Config) Kinds() (all []string) {
	for i := range c.Workloads {
		w := &c.Workloads[i]
		for _, t := range []*KubernetesTarget{w.Match.Kubernetes, w.Knob.Kubernetes} {
			if t != nil {
				kind, _ := t.Workload()
				all = append(all, kind)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// path is NAMESPACE/KIND/NAME.
func (t *KubernetesTarget) path() string {
	kind, name := t.Workload()
	return t.Namespace + "/" + kind + "/" + name
}

// spans are the attributes that spans of the workload have.
func (t *KubernetesTarget) spans() map[string]Values {
	kind, name := t.Workload()
	return map[string]Values{
		"k8s.namespace.name":                     {t.Namespace},
		"k8s." + strings.ToLower(kind) + ".name": {name},
	}
}

// podPattern matches the names of the pods of the workload, and of no other whose name
// begins with its name.
func (t *KubernetesTarget) podPattern() string {
	switch kind, name := t.Workload(); kind {
	case "StatefulSet":
		return regexp.QuoteMeta(name) + "-[0-9]+"
	case "DaemonSet":
		return regexp.QuoteMeta(name) + "-[a-z0-9]{5}"
	}
	_, name := t.Workload()
	return regexp.QuoteMeta(name) + "-[a-z0-9]+-[a-z0-9]+"
}

// Matchers are the labels that cAdvisor and kube-state-metrics give its pods, and cAdvisor its
// containers: cAdvisor's groups of whole pods have none, and no limit of their own.
func (t *KubernetesTarget) Matchers() string {
	container := ",container!=\"\",container!=\"POD\""
	if t.Container != "" {
		container = fmt.Sprintf(",container=%q", t.Container)
	}
	return t.podMatchers() + container
}

// podMatchers are the labels of its pods.
func (t *KubernetesTarget) podMatchers() string {
	return fmt.Sprintf("namespace=%q,pod=~%q", t.Namespace, t.podPattern())
}

// matchers are the labels that stand for $match.
func (t *KubernetesTarget) matchers() string {
	if t.Container == "" {
		return t.podMatchers()
	}
	return t.Matchers()
}

// clusterRoot is the root of knobs in a cluster, where those of a host have a directory. No
// pool of a host shares its capacity.
const clusterRoot = "/kubernetes"

// pods reports whether the knob sets limits of pods, and not only their number.
func (k *Knob) pods() bool {
	return k.Kubernetes != nil && (k.Memory != nil || k.only() != trimtab.Replicas)
}

// Scale returns where the number of pods of a workload is set in addition to their limits, in
// the form of [Config.Location]; ok is false if it is not.
func (k *Knob) Scale() (kind, root, path string, ok bool) {
	if _, bounded := k.BoundsOf(trimtab.Replicas); !bounded || !k.pods() {
		return "", "", "", false
	}
	return "kubernetes-scale", clusterRoot, k.Kubernetes.path() + "/*", true
}

// Watched lists the namespaces of the cluster that are watched; none: there is no
// workload of a cluster.
func (c *Config) Watched() []string {
	var all []string
	for i := range c.Workloads {
		w := &c.Workloads[i]
		for _, t := range []*KubernetesTarget{w.Match.Kubernetes, w.Knob.Kubernetes} {
			if t != nil && t.Namespace != "" {
				all = append(all, t.Namespace)
			}
		}
	}
	for _, n := range c.Namespaces {
		all = append(all, n.Name)
	}
	if len(all) > 0 {
		all = append(all, c.Kubernetes.Namespaces...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// dnsName reports whether Kubernetes may name an object so.
func dnsName(s string) bool {
	inner := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }
	outside := strings.IndexFunc(s, func(r rune) bool { return !inner(r) && r != '-' && r != '.' })
	return s != "" && len(s) <= 253 && outside < 0 && inner(rune(s[0])) && inner(rune(s[len(s)-1]))
}

// check looks at the section.
func (k *Kubernetes) check(v *validator) {
	for i, name := range k.Namespaces {
		v.dns(fmt.Sprintf("kubernetes.namespaces[%d]", i), name)
	}
	for i, name := range k.TakeOver {
		if name == "" || len(name) > 128 {
			v.fail(fmt.Sprintf("kubernetes.take_over[%d]", i), fmt.Sprintf("%q is no field manager", clip(name)), "write the name that explain gives, or kubectl get -o yaml --show-managed-fields")
		}
	}
	if k.Journal != "" {
		v.dns("kubernetes.journal", k.Journal)
	}
	if ends := []string{"upwards", "baseline"}; !slices.Contains(ends, k.Restore) {
		v.fail("kubernetes.restore", fmt.Sprintf("unknown restore %q", clip(k.Restore)), suggest(k.Restore, ends))
	}
	switch sources := []string{MemoryByMetrics, MemoryByKubelet, MemoryByPrometheus}; {
	case !slices.Contains(sources, k.Memory):
		v.fail("kubernetes.memory", fmt.Sprintf("unknown source %q of memory", clip(k.Memory)), suggest(k.Memory, sources))
	case k.Memory == MemoryByPrometheus && v.config.Prometheus.URL == "" && !v.lost("prometheus", "prometheus.url"):
		v.fail("kubernetes.memory", "there is no Prometheus to ask", "write prometheus: {url: http://127.0.0.1:9090} at the top of the file")
	case k.KubeletCAFile != "" && k.Memory != MemoryByKubelet:
		v.fail("kubernetes.kubelet_ca_file", "kubelets are not asked", "write memory: kubelet, or remove kubelet_ca_file")
	}
}

func (v *validator) dns(where, name string) {
	if !dnsName(name) {
		v.fail(where, fmt.Sprintf("%q is no name of Kubernetes", clip(name)), "write lower-case letters, digits, - and ., as kubectl get shows it")
	}
}

// check looks at the name of a workload of a cluster.
func (t *KubernetesTarget) check(v *validator, where string) {
	if t == nil {
		return
	}
	var named, keys []string
	for _, k := range t.kinds() {
		keys = append(keys, where+"."+k.key())
		if *k.name != "" {
			named = append(named, k.key())
			v.dns(where+"."+k.key(), *k.name)
		}
	}
	switch {
	case t.Namespace == "":
		v.fail(where, "kubernetes has no namespace", "write namespace: default, or that of the workload")
	case len(named) == 0 && v.lost(keys...):
	case len(named) == 0:
		v.fail(where, "kubernetes names no workload", "write deployment: NAME, or statefulset: NAME; or leave the name of the workload out, for all of the namespace")
	case len(t.Selector) > 0:
		v.fail(where+".selector", "selector chooses among all workloads of a namespace", "remove it, or the names of the workload")
	case len(named) > 1:
		v.fail(where+"."+named[1], fmt.Sprintf("kubernetes has both a %s and a %s", named[0], named[1]), "one workload is one of them: remove one")
	}
	if all := []string{"", RequestsKeep, RequestsFollow}; !slices.Contains(all, t.Requests) {
		v.fail(where+".requests", fmt.Sprintf("unknown requests %q", clip(t.Requests)), suggest(t.Requests, all[1:]))
	}
	for key, name := range map[string]string{"namespace": t.Namespace, "container": t.Container} {
		if name != "" {
			v.dns(where+"."+key, name)
		}
	}
}

// inherit gives a knob without a location that of match.kubernetes.
func (w *Workload) inherit(bounded bool) {
	if k := &w.Knob; bounded && w.Match.Kubernetes != nil && !k.Declared() {
		same := *w.Match.Kubernetes
		k.Kubernetes = &same
	}
}

// twoLocations returns the key of a second location; "": there is only one.
func (k *Knob) twoLocations() string {
	switch {
	case k.Cgroup != "" && k.Process != nil, k.Kubernetes != nil && k.Process != nil:
		return "process"
	case k.Cgroup != "" && k.Kubernetes != nil:
		return "kubernetes"
	}
	return ""
}

// checkClusterKnob checks what is special to a knob of a cluster.
func (k *Knob) checkClusterKnob(v *validator, where string) {
	if k.Kubernetes == nil {
		k.checkReplicas(v, where)
		if _, ok := k.Resources[trimtab.Replicas]; ok {
			v.fail(v.keyOf(where, trimtab.Replicas), "only a workload of Kubernetes has replicas", "write kubernetes: {namespace: …, deployment: …}, or workers for a process knob")
		}
		return
	}
	if v.has(where + ".kubernetes") { // not that of match.kubernetes
		k.Kubernetes.check(v, where+".kubernetes")
	}
	k.checkReplicas(v, where)
	for name := range k.Resources {
		if name != trimtab.Replicas {
			v.fail(v.keyOf(where, name), fmt.Sprintf("a kubernetes knob has no %s", clip(name)), "it turns cpu, memory and resources: {replicas: …}")
		}
	}
	if _, number := k.Resources[trimtab.Replicas]; k.Kubernetes.DaemonSet != "" && (number || k.Replicas != nil) {
		v.fail(where, "a DaemonSet has a pod on each node, and no number that can be set", "remove replicas")
	}
	if k.Interface != nil {
		v.fail(where+".interface", "a kubernetes knob has no interface", "remove it")
	}
}
