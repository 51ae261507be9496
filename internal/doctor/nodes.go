package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/console/view"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/planner/packing"
)

// Nodes says how many nodes the requests of all pods need by best fit, and how many they would need if
// the pods of workloads reserved what trimtab finds that they need; money has what is known of these, by
// name. Pods that trimtab does not manage count as they are.
func Nodes(ctx context.Context, cfg *config.Config, money map[string]view.Money, out io.Writer) error {
	client, err := kube.Open(kube.Config{Kubeconfig: cfg.Kubernetes.Kubeconfig, Context: cfg.Kubernetes.Context})
	if err != nil {
		return err
	}
	all, on, err := client.Scheduled(ctx)
	if errors.Is(err, trimtab.ErrRefused) {
		fmt.Fprintln(out, "not allowed to list the pods of all namespaces and the nodes: how many nodes they need is not known")
		return nil
	}
	if err != nil {
		return fmt.Errorf("count nodes: %w", err)
	}
	nodes, err := headroom(all, on)
	if err != nil {
		return fmt.Errorf("count nodes: %w", err)
	}
	more, err := changes(ctx, client, cfg, money)
	if err != nil {
		return fmt.Errorf("count nodes: %w", err)
	}
	var before, after []packing.Amounts
	changed := map[string]bool{}
	for _, p := range all {
		if p.OfNode() {
			continue
		}
		pod := packing.Amounts{CPU: p.Requests(trimtab.CPU), Memory: p.Requests(trimtab.Memory)}
		before = append(before, pod)
		for _, m := range more {
			if m.of.Selects(p) {
				pod.CPU, changed[m.name] = max(0, pod.CPU+m.cores), true
			}
		}
		after = append(after, pod)
	}
	fmt.Fprintf(out, "%s: the requests of %s need %s\n", view.Count(len(nodes), "node"), view.Count(len(before), "pod"), needed(before, nodes))
	if len(changed) > 0 {
		fmt.Fprintf(out, "if the pods of %s reserved what trimtab finds that they need, they would need %s\n", strings.Join(slices.Sorted(maps.Keys(changed)), ", "), needed(after, nodes))
	}
	return nil
}

// needed puts into words how many nodes pods need.
func needed(pods, nodes []packing.Amounts) string {
	r := packing.BestFit(pods, nodes)
	text := fmt.Sprintf("%d by best fit (at least %d)", r.Nodes, r.Least)
	if r.More > 0 {
		text += fmt.Sprintf(", %d more than there are", r.More)
	}
	if r.Unplaced > 0 {
		text += fmt.Sprintf("; %s fit on none", view.Count(r.Unplaced, "pod"))
	}
	return text
}

// headroom returns what nodes have for pods that may run on any: without their own.
func headroom(all []*kube.Pod, on []*kube.Node) ([]packing.Amounts, error) {
	out, at := make([]packing.Amounts, len(on)), map[string]int{}
	for i, n := range on {
		cpu, ok := n.Status.Allocatable[trimtab.CPU]
		memory, ok2 := n.Status.Allocatable[trimtab.Memory]
		if !ok || !ok2 {
			return nil, fmt.Errorf("node %s does not say what it has: %w", n.Name, trimtab.ErrUnsupported)
		}
		out[i], at[n.Name] = packing.Amounts{CPU: float64(cpu), Memory: float64(memory)}, i
	}
	for _, p := range all {
		if i, ok := at[p.Spec.NodeName]; ok && p.OfNode() {
			out[i] = packing.Amounts{CPU: max(0, out[i].CPU-p.Requests(trimtab.CPU)), Memory: max(0, out[i].Memory-p.Requests(trimtab.Memory))}
		}
	}
	return out, nil
}

// change is by how many cores the request of each pod of a workload would change.
type change struct {
	name  string
	of    *kube.Workload
	cores float64
}

func changes(ctx context.Context, client *kube.Client, cfg *config.Config, money map[string]view.Money) (out []change, err error) {
	for i := range cfg.Workloads {
		w := &cfg.Workloads[i]
		m, known := money[w.Name]
		if w.Knob.Kubernetes == nil || !known || m.Needed == nil || m.Pods == 0 {
			continue
		}
		kind, name := w.Knob.Kubernetes.Workload()
		of, err := client.Workload(ctx, kube.Ref{Namespace: w.Knob.Kubernetes.Namespace, Kind: kind, Name: name})
		if err != nil {
			return nil, err
		}
		out = append(out, change{w.Name, of, (*m.Needed - m.Reserved) / float64(m.Pods)})
	}
	return out, nil
}
