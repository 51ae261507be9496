package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"slices"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/hostfs"
	"github.com/trimtab/trimtab/internal/kube"
)

// The names of the kinds.
const (
	PodsKind  = "kubernetes"
	ScaleKind = "kubernetes-scale"
)

// Pods returns the kind of knobs for limits and requests of running pods. A location is
// NAMESPACE/KIND/NAME/CONTAINER/*, and each pod of that workload is an instance.
func Pods(c Cluster) actuator.Kind {
	c.policies = &policies{}
	back := &Reopener{}
	return actuator.Kind{
		Name: PodsKind, Resources: []string{trimtab.CPU, trimtab.Memory}, Live: true,
		Probe: probe,
		Find: func(ctx context.Context, at actuator.Location) ([]actuator.Instance, error) {
			return findPods(ctx, c, at)
		},
		Open: func(at actuator.Location, resource string) (actuator.Knob, error) {
			return openPod(c, at, resource)
		},
		Reopen: back.Limit,
		Measure: func(_ actuator.Location, resource string) (float64, error) {
			w, err := c.Watched()
			if err != nil {
				return 0, err
			}
			return w.AllAllocatable(resource)
		},
	}
}

// Scales returns the kind of knobs for the number of pods. A location is NAMESPACE/KIND/NAME/*. Its
// one instance is the workload itself; if the workload is created again, it is a new instance.
func Scales(c Cluster) actuator.Kind {
	back := &Reopener{}
	return actuator.Kind{
		Name: ScaleKind, Resources: []string{trimtab.Replicas},
		Probe: probe,
		Find: func(ctx context.Context, at actuator.Location) ([]actuator.Instance, error) {
			return findWorkload(ctx, c, at)
		},
		Open: func(at actuator.Location, _ string) (actuator.Knob, error) {
			return actuator.OrNil(openWorkload(c, at))
		},
		Reopen: func(undo []byte) (actuator.Knob, error) { return actuator.OrNil(back.Scale(undo)) },
	}
}

// probe checks the syntax of a location. It does not contact the cluster, which may start later
// than trimtab.
func probe(declared actuator.Location) (actuator.Location, error) {
	_, _, err := kube.ParseRef(declared.Path)
	return declared, err
}

// idOf returns a number that differs from those of earlier objects of the same name.
func idOf(uid string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(uid))
	return max(h.Sum64(), 1)
}

// watched returns the watched cluster, the workload that a location names, and the rest of its path.
func watched(ctx context.Context, c Cluster, at actuator.Location) (w *kube.Cluster, ref kube.Ref, rest []string, err error) {
	if ref, rest, err = kube.ParseRef(at.Path); err != nil {
		return nil, ref, rest, err
	}
	if w, err = c.watched(ctx); err != nil {
		err = fmt.Errorf("find %s: %w", ref, err)
	}
	return w, ref, rest, err
}

func findPods(ctx context.Context, c Cluster, at actuator.Location) (found []actuator.Instance, err error) {
	w, ref, _, err := watched(ctx, c, at)
	if err != nil {
		return nil, err
	}
	pods, err := w.PodsOf(ref)
	if err != nil {
		return nil, fmt.Errorf("find pods of %s: %w", ref, err)
	}
	if len(pods) > hostfs.MaxInstances {
		return nil, fmt.Errorf("find pods of %s: there are %d, at most %d may be: %w", ref, len(pods), hostfs.MaxInstances, trimtab.ErrRefused)
	}
	for _, p := range pods {
		found = append(found, actuator.Instance{Name: p.Name, ID: idOf(p.UID)})
	}
	slices.SortFunc(found, func(a, b actuator.Instance) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}

func findWorkload(ctx context.Context, c Cluster, at actuator.Location) ([]actuator.Instance, error) {
	w, ref, _, err := watched(ctx, c, at)
	if err != nil {
		return nil, err
	}
	of, err := w.WorkloadOf(ref)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []actuator.Instance{{Name: of.Name, ID: idOf(of.UID)}}, nil
}

// openPod opens the limit, or the request, of a pod at NAMESPACE/KIND/NAME/CONTAINER/POD.
func openPod(c Cluster, at actuator.Location, resource string) (actuator.Knob, error) {
	w, ref, rest, err := watched(context.Background(), c, at)
	if err != nil {
		return nil, err
	}
	if len(rest) != 2 {
		return nil, trimtab.Invalidf("location %.100q: want NAMESPACE/KIND/NAME/CONTAINER/POD", at.Path)
	}
	p, err := w.PodOf(ref.Namespace, rest[1], "")
	if err != nil {
		return nil, err
	}
	container := p.Container(rest[0])
	if container == nil {
		return nil, trimtab.Invalidf("pod %s/%s has no container %q, or several: name one in knob.kubernetes.container", ref.Namespace, p.Name, rest[0])
	}
	rules := c.rules(ref)
	request := resource == trimtab.CPU && rules.Weighs && p.Status.QOSClass != guaranteed
	where := location{Config: c.Config, Namespace: ref.Namespace, Pod: p.Name, UID: p.UID, Container: container.Name, Resource: resource, Workload: ref,
		Request: request, PodLevel: wholePod(p, container, resource, request)}
	return openLimit(where, kept{c}, rules).knob(), nil
}

// openWorkload opens the number of pods of a workload at NAMESPACE/KIND/NAME/NAME.
func openWorkload(c Cluster, at actuator.Location) (*Scale, error) {
	w, ref, _, err := watched(context.Background(), c, at)
	if err != nil {
		return nil, err
	}
	of, err := w.WorkloadOf(ref)
	if err != nil {
		return nil, err
	}
	return openScale(c.Config, ref, of.UID, kept{c}, c.rules(ref)), nil
}
