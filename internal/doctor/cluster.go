package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator/kubernetes"
	"github.com/trimtab/trimtab/config"
	kubeexport "github.com/trimtab/trimtab/exporters/kubernetes"
	"github.com/trimtab/trimtab/internal/kube"
)

// CheckCluster prints which parts of a configuration work in its cluster, and which do not, with
// the reason. The error counts the latter.
func CheckCluster(ctx context.Context, cfg *config.Config, out io.Writer) error {
	client, err := kube.Open(kube.Config{Kubeconfig: cfg.Kubernetes.Kubeconfig, Context: cfg.Kubernetes.Context})
	if err != nil {
		return err
	}
	version, err := client.Version(ctx)
	if err != nil {
		return fmt.Errorf("ask API server %s: %w", client.Server(), err)
	}
	fmt.Fprintf(out, "API server %s, Kubernetes %s\n", client.Server(), version)
	c := &clusterCheck{client: client, out: out}
	needs := kube.Needs{Namespaces: cfg.Watched(), Kinds: cfg.Kinds(), Journal: cfg.Kubernetes.Journal, JournalName: kubernetes.JournalName(cfg.Pool.Name)}
	told := cfg.Exporters.Kubernetes
	needs.Recommend, needs.Events = told.Recommender != "", told.Events == kubeexport.AllEvents
	if told.StartValues != "" {
		needs.Starts, needs.StartsName = told.StartValues, kubeexport.StartValuesName(cfg.Pool.Name)
		c.starts(ctx, version, needs.Starts, needs.StartsName)
	}
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		if w.SLO.Object != "" {
			needs.Objectives = append(needs.Objectives, w.SLO.Object)
			c.objective(ctx, w)
		}
		if w.Knob.Kubernetes == nil {
			continue
		}
		kind, _, _ := cfg.Location(&w.Knob)
		_, _, _, both := w.Knob.Scale()
		if w.Mode == trimtab.Act {
			needs.Events = needs.Events || told.Events != kubeexport.NoEvents
			needs.Resize = needs.Resize || kind == kubernetes.PodsKind
			needs.Scale = needs.Scale || kind == kubernetes.ScaleKind || both
			needs.Annotate = needs.Annotate || w.Knob.Replicas != nil && w.Knob.Replicas.DeletionCost
		}
		if kind == kubernetes.PodsKind {
			c.resize(ctx, version)
		}
		if w.Knob.Sized(&cfg.Pool) {
			needs.Metrics, needs.Kubelets = cfg.Kubernetes.Memory == config.MemoryByMetrics, cfg.Kubernetes.Memory == config.MemoryByKubelet
		}
		c.workload(ctx, w)
	}
	for _, right := range needs.Rights() {
		allowed, err := client.Allowed(ctx, right)
		switch {
		case err != nil:
			return err
		case !allowed && right.Resource == "nodes" && right.Subresource == "":
			fmt.Fprintf(out, "not allowed to %s: what nodes have is not known, all else works\n", right)
		case !allowed:
			c.bad("not allowed to %s: see deploy/kubernetes", right)
		}
	}
	if needs.Metrics {
		c.metrics(ctx)
	}
	for _, namespace := range needs.Namespaces {
		c.objectives(ctx, namespace)
	}
	if c.problems > 0 {
		return fmt.Errorf("check kubernetes: %d things do not work: %w", c.problems, trimtab.ErrRefused)
	}
	fmt.Fprintln(out, "good: all that the file asks for works here")
	return nil
}

// cluster checks the cluster, as CheckCluster does.
func (v *visit) cluster() {
	if len(v.cfg.Watched()) == 0 {
		return
	}
	var said strings.Builder
	err := CheckCluster(v.ctx, v.cfg, &said)
	text := strings.ReplaceAll(strings.TrimSpace(said.String()), "\n", "; ")
	switch {
	case err == nil:
		v.add("kubernetes", "cluster", FoundOK, text, "")
	case text == "":
		v.failed("kubernetes", "cluster", err, "does the kubeconfig name it, and does kubectl reach it? See kubernetes in docs/config.md")
	default:
		v.add("kubernetes", "cluster", FoundBad, text, "trimtab check kubernetes says it line by line")
	}
}

// clusterCheck collects the findings, and counts the parts that do not work.
type clusterCheck struct {
	client   *kube.Client
	out      io.Writer
	problems int
	// the result for limits is printed only once
	asked bool
}

func (c *clusterCheck) bad(format string, args ...any) {
	c.problems++
	fmt.Fprintf(c.out, format+"\n", args...)
}

// of returns how a finding about a workload is printed: one that the file does not name is no problem
// of the file.
func (c *clusterCheck) of(w *config.Workload) func(format string, args ...any) {
	if w.Drafted {
		return func(format string, args ...any) { fmt.Fprintf(c.out, format+"\n", args...) }
	}
	return c.bad
}

func (c *clusterCheck) resize(ctx context.Context, v kube.Version) {
	if c.asked {
		return
	}
	c.asked = true
	switch has, err := c.client.Serves(ctx, "", "v1", "pods/resize", "patch"); {
	case err != nil:
		c.bad("whether there is pods/resize cannot be told: %v", err)
	case !has:
		c.bad("no pods/resize: limits of running pods can be changed from Kubernetes 1.33 on, this is %s", v)
	case v.Major == 1 && v.Minor == 33:
		fmt.Fprintf(c.out, "Kubernetes %s: a memory limit may rise and not fall again, which it may from 1.34 on: a restore leaves it, unless resizePolicy restarts the container\n", v)
	}
}

// metrics says whether the resource metrics API tells the memory of pods.
func (c *clusterCheck) metrics(ctx context.Context) {
	switch has, err := c.client.Serves(ctx, "metrics.k8s.io", "v1beta1", "pods", "list"); {
	case err != nil:
		c.bad("whether there is metrics.k8s.io cannot be told: %v", err)
	case !has:
		c.bad("no metrics.k8s.io, so what pods use of memory is not known: install metrics-server, or write kubernetes: {memory: kubelet}")
	}
}

// starts says whether new pods can begin with start values.
func (c *clusterCheck) starts(ctx context.Context, v kube.Version, namespace, name string) {
	switch has, err := c.client.Serves(ctx, "admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies", "list"); {
	case err != nil:
		c.bad("whether there is MutatingAdmissionPolicy cannot be told: %v", err)
	case !has:
		c.bad("no MutatingAdmissionPolicy: new pods can begin with start values from Kubernetes 1.36 on, this is %s", v)
	default:
		if _, err := c.client.ConfigMap(ctx, namespace, name); err != nil {
			c.bad("start values: %v: install the chart with startValues.enabled", err)
		}
	}
}

// objectives reports which objects of OpenSLO, Sloth and Pyrra in a namespace cannot be read, by
// name. Nothing depends on them until they are imported, so they are no problem of the
// configuration, nor of each other.
func (c *clusterCheck) objectives(ctx context.Context, namespace string) {
	all, err := c.client.Objectives(ctx, namespace)
	switch {
	case errors.Is(err, trimtab.ErrRefused):
		fmt.Fprintf(c.out, "not allowed to list objectives of OpenSLO, Sloth and Pyrra in namespace %s: they are not looked at\n", namespace)
	case err != nil:
		fmt.Fprintf(c.out, "objectives of OpenSLO, Sloth and Pyrra: %v\n", err)
	}
	for i := range all {
		if _, err := config.ReadObjectives(all[i].Name, all[i].Text, config.DefaultWindow); err != nil {
			fmt.Fprintf(c.out, "%s cannot be imported: %v\n", all[i].Name, err)
		} else {
			fmt.Fprintf(c.out, "%s can be imported: trimtab import slo --kubernetes=%s\n", all[i].Name, namespace)
		}
	}
}

// workload checks whether the workload and its container exist.
func (c *clusterCheck) workload(ctx context.Context, w *config.Workload) {
	t := w.Knob.Kubernetes
	kind, name := t.Workload()
	ref := kube.Ref{Namespace: t.Namespace, Kind: kind, Name: name}
	of, err := c.client.Workload(ctx, ref)
	if err != nil {
		c.of(w)("%s: %v", w.Name, err)
		return
	}
	template := &kube.Pod{Spec: of.Spec.Template.Spec}
	container := template.Container(t.Container)
	switch {
	case container == nil && t.Container == "":
		c.of(w)("%s: pods of %s have %d containers: name one in knob.kubernetes.container", w.Name, ref, len(template.Spec.Containers))
	case container == nil:
		c.of(w)("%s: pods of %s have no container %q", w.Name, ref, t.Container)
	case w.Knob.CPU != nil && !c.cpu(w, container, template.Spec.Resources, ref):
	default:
		drafted := ""
		if w.Drafted {
			drafted = ", by its namespace: recommended only"
		}
		fmt.Fprintf(c.out, "%s is %s, replicas: %d%s\n", w.Name, ref, of.Replicas(), drafted)
	}
}

// cpu determines, by the template, which of the container's CPU values trimtab will set; false: it
// can set none.
func (c *clusterCheck) cpu(w *config.Workload, container *kube.Container, whole *kube.Resources, ref kube.Ref) bool {
	request := container.Resources.Requests[trimtab.CPU]
	_, limited := container.Resources.Limits[trimtab.CPU]
	if whole != nil { // of the pod
		request = max(request, whole.Requests[trimtab.CPU])
		limited = limited || whole.Limits[trimtab.CPU] > 0
	}
	switch {
	case w.Knob.CPU.Cap != config.CapNever && !limited && !w.Knob.Kubernetes.AddLimits:
		c.of(w)("%s: container %s of %s has no CPU limit in its template: a limit that is not there is not added without knob.kubernetes.add_limits; with cap: never its request is set", w.Name, container.Name, ref)
		return false
	case w.Knob.CPU.Cap != config.CapNever:
	case request == 0:
		c.of(w)("%s: container %s of %s has no CPU request in its template: give it one, which is its weight", w.Name, container.Name, ref)
		return false
	default:
		fmt.Fprintf(c.out, "%s: the CPU request of container %s, %s in its template, is set, as its weight\n", w.Name, container.Name, kube.Text(trimtab.CPU, float64(request)))
		if w.Usage == "" {
			fmt.Fprintf(c.out, "%s: no `usage` query: trimtab cannot tell when the needs do not fit, and leaves requests as they are\n", w.Name)
		}
	}
	return true
}

// objective checks the SLO object of a workload.
func (c *clusterCheck) objective(ctx context.Context, w *config.Workload) {
	if w.SLO.Object == "" {
		return
	}
	text, err := c.client.ObjectiveOf(ctx, w.SLO.Object)
	switch {
	case errors.Is(err, os.ErrNotExist):
		c.bad("%s: its SLO %s is not there", w.Name, w.SLO.Object)
		return
	case err != nil:
		c.bad("%s: its SLO %s cannot be read: %v", w.Name, w.SLO.Object, err)
		return
	}
	if _, err := config.ReadObjectives(w.SLO.Object, text, config.DefaultWindow); err != nil {
		c.bad("%s: its SLO has no meaning here: %v", w.Name, err)
	}
}
