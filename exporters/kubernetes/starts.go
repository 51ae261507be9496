package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/internal/newest"
)

const (
	// forgetAfter is how long start values outlive the actuator's last report: three of its
	// heartbeats in a cluster.
	forgetAfter = 30 * time.Second
	// writeAfter is the least time between two writes of start values.
	writeAfter = 3 * time.Second
	// startBand is a difference that is not worth a write.
	startBand = 0.02
)

// StartValuesName is the ConfigMap of a pool.
func StartValuesName(pool string) string { return "trimtab-start-values-" + strings.ToLower(pool) }

// startKey is the key of a start value. Only the name of a workload may have dots.
func startKey(r kube.Ref, container, resource string) string {
	return fmt.Sprintf("%s.%s.%s.%s.%s", r.Namespace, r.Kind, r.Name, container, resource)
}

// maxKey bounds a key of a ConfigMap.
const maxKey = 253

// requests reports whether a workload's CPU is a request, not a limit.
func (e *Exporter) requests(workload string) bool {
	for _, h := range e.newest.On(workload) {
		for _, k := range h.Of(workload) {
			if k.Resource == trimtab.CPU {
				return k.Reserves
			}
		}
	}
	return false
}

// holds reads the values of an actuator's knobs. A workload without pods keeps the limits of its
// last ones, with which the next begin.
func (e *Exporter) holds(h *trimtab.Holding) {
	kept := newest.Only(h, func(k *trimtab.KnobState) bool { return e.declares(k.Workload) && k.Status != nil })
	e.newest.Observe(kept, e.now())
	names := map[string]bool{}
	for i := range kept.Targets {
		names[kept.Targets[i].Workload] = true
	}
	for name := range names {
		if limits := e.limits(name); limits != nil {
			s := e.workloads[name]
			s.limits, s.reportedAt = limits, e.now()
		}
	}
}

// limits returns the limits of a workload's serving pods, by resource, by the reports that are young
// enough; nil: these have none of its pods.
func (e *Exporter) limits(workload string) (out map[string][]float64) {
	for _, h := range e.newest.On(workload) {
		if e.now().Sub(h.ReportedAt()) > forgetAfter {
			continue
		}
		for _, k := range h.Of(workload) {
			if k.Resource == trimtab.Replicas || k.Reserves {
				continue // start values are limits
			}
			if out == nil {
				out = map[string][]float64{}
			}
			if k.Problem == "" && k.ReadOnly == "" && k.Status.Phase == "" && !k.InForce().Unlimited && h.LeaseLeft > 0 && !h.Paused {
				out[k.Resource] = append(out[k.Resource], k.InForce().Value)
			}
		}
	}
	return out
}

// wanted returns the start values to write: the median of the serving pods' values, so that a new
// pod starts like the others.
func (e *Exporter) wanted(cluster *kube.Cluster) map[string]float64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	out, now := map[string]float64{}, e.now()
	for _, s := range e.workloads {
		if s.Mode != trimtab.Act || now.Sub(s.reportedAt) > forgetAfter {
			continue
		}
		of, err := cluster.WorkloadOf(s.Ref)
		if err != nil {
			continue
		}
		template := &kube.Pod{Spec: of.Spec.Template.Spec}
		c := template.Container(s.Container)
		if c == nil {
			continue
		}
		for resource, all := range s.limits {
			key := startKey(s.Ref, c.Name, resource)
			limit, limited := c.Resources.Limits[resource]
			if !limited || len(key) > maxKey {
				continue
			}
			v := slices.Sorted(slices.Values(all))[(len(all)-1)/2]
			if v > float64(limit) && !fits(cluster, s.Ref.Namespace, resource, v) {
				continue // a quota would keep the pod from beginning at all
			}
			out[key] = v
		}
	}
	return out
}

// fits reports whether the quotas of a namespace allow one more pod with a limit.
func fits(cluster *kube.Cluster, namespace, resource string, v float64) bool {
	for _, name := range []string{"limits." + resource, "requests." + resource, resource} {
		if left, _, err := cluster.Left(namespace, name); err != nil || left < v {
			return false
		}
	}
	return true
}

// writeStarts writes the start values that changed.
func (e *Exporter) writeStarts(ctx context.Context, cluster *kube.Cluster) {
	if e.config.StartValues == "" || e.now().Sub(e.starts) < writeAfter || !e.tries("start value") {
		return
	}
	wanted := e.wanted(cluster)
	if !e.hasHoldings() && e.now().Sub(e.begun) < forgetAfter {
		return // values of an earlier process stay until the state is known
	}
	if err := e.setStarts(ctx, cluster.Client, wanted); err != nil {
		e.had = nil
		e.failed("start value", err)
	}
}

// hasHoldings reports whether the actuator has reported its knobs.
func (e *Exporter) hasHoldings() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.workloads {
		if !s.reportedAt.IsZero() {
			return true
		}
	}
	return false
}

// setStarts makes the ConfigMap have these values and no others.
func (e *Exporter) setStarts(ctx context.Context, client *kube.Client, wanted map[string]float64) (err error) {
	if e.had == nil {
		if e.had, err = client.ConfigMap(ctx, e.config.StartValues, StartValuesName(e.config.Pool)); err != nil {
			return fmt.Errorf("%w (the chart makes it, with startValues.enabled)", err)
		}
	}
	change := map[string]*string{}
	for key := range e.had.Data {
		if _, stays := wanted[key]; !stays {
			change[key] = nil
		}
	}
	for key, v := range wanted {
		text := kube.Text(key[strings.LastIndex(key, ".")+1:], v)
		var has kube.Quantity
		if old := e.had.Data[key]; old == text || old != "" && has.UnmarshalJSON([]byte(old)) == nil && math.Abs(float64(has)-v) <= startBand*v {
			continue
		}
		change[key] = &text
	}
	if len(change) == 0 {
		return nil
	}
	e.starts = e.now()
	after, err := client.SetData(ctx, e.had, change)
	if err != nil {
		return err
	}
	e.had = after
	e.wrote("start value")
	return nil
}

// End removes the start values: later pods begin with their template's.
func (e *Exporter) End() error {
	if e.config.StartValues == "" || e.client == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	e.had = nil
	return e.setStarts(ctx, e.client, nil)
}

// ClearStartValues removes all start values of a pool.
func ClearStartValues(ctx context.Context, client *kube.Client, namespace, pool string) error {
	at, err := client.ConfigMap(ctx, namespace, StartValuesName(pool))
	if err != nil {
		return err
	}
	change := map[string]*string{}
	for key := range maps.Keys(at.Data) {
		change[key] = nil
	}
	if len(change) == 0 {
		return nil
	}
	_, err = client.SetData(ctx, at, change)
	return err
}
