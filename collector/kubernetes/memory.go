package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/collector/poll"
	"github.com/trimtab/trimtab/internal/kube"
	"github.com/trimtab/trimtab/quantity"
)

// Target is a container of the pods of one workload.
type Target struct {
	// Workload and Host name it in samples.
	Workload, Host string
	Ref            kube.Ref
	// Container of each pod; "": the only one.
	Container string
}

// Usage reads the memory of containers. It is safe for concurrent use.
type Usage struct {
	cluster  *kube.Cluster
	targets  []Target
	kubelets *kube.Kubelets // nil: the resource metrics API is asked

	mu    sync.Mutex
	last  map[kube.UsageKey]kube.Usage
	lacks []string
}

// UsageOf returns the usage of the targets' containers; kubelets may be nil.
func UsageOf(c *kube.Cluster, kubelets *kube.Kubelets, targets []Target) *Usage {
	return &Usage{cluster: c, targets: targets, kubelets: kubelets}
}

const (
	// usedWithin is the largest age of a reading with which a limit may be lowered. metrics-server has
	// a new one each 15 s.
	usedWithin = time.Minute
	// askedAtOnce bounds the requests at one time.
	askedAtOnce = 8
)

// WorkingSet returns the working set of a container, in bytes; false: no reading of it is fresh.
func (u *Usage) WorkingSet(p *kube.Pod, container string, now time.Time) (bytes float64, ok bool) {
	v, ok := u.reading(p, container)
	if !ok || v.WorkingSet == nil || now.Sub(v.Time) > usedWithin {
		return 0, false
	}
	return *v.WorkingSet, true
}

// reading returns the last reading of a container. The metrics API does not tell uids: a reading from
// before the pod was created is of an earlier pod of its name.
func (u *Usage) reading(p *kube.Pod, container string) (kube.Usage, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, uid := range []string{p.UID, ""} {
		if v, ok := u.last[kube.UsageKey{Namespace: p.Namespace, Pod: p.Name, UID: uid, Container: container}]; ok && !v.Time.Before(p.CreationTimestamp) {
			return v, true
		}
	}
	return kube.Usage{}, false
}

// Source returns it as a source of samples.
func (u *Usage) Source() poll.Source {
	return poll.Source{
		Name: SourceName, About: "memory of containers of a cluster", Interval: 5 * time.Second,
		Quantities: []quantity.Quantity{quantity.WorkingSet, quantity.MemoryUsage, quantity.MemoryAnonymous, quantity.MemorySwap, quantity.MemoryLimit, quantity.PressureMemorySome},
		Open:       func(poll.Config) (poll.Reader, error) { return u, nil },
	}
}

// SourceName is the source in samples.
const SourceName = "kubernetes"

// Unavailable says what the cluster lacks.
func (u *Usage) Unavailable() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.lacks
}

// Close releases the connections to kubelets.
func (u *Usage) Close() error {
	if u.kubelets != nil {
		u.kubelets.Close()
	}
	return nil
}

// Read reads each container once.
func (u *Usage) Read(ctx context.Context, _ []poll.Group) (all []*trimtab.Sample, _ error) {
	var errs []error
	pods := make([][]*kube.Pod, len(u.targets))
	for i, t := range u.targets {
		var err error
		if pods[i], err = u.cluster.PodsOf(t.Ref); err != nil {
			errs = append(errs, fmt.Errorf("find pods of %s: %w", t.Ref, err))
		}
	}
	errs = append(errs, u.ask(ctx, pods))
	now := time.Now().Round(0).UTC()
	for i, t := range u.targets {
		for _, p := range pods[i] {
			all = append(all, u.samples(now, &t, p)...)
		}
	}
	return all, errors.Join(errs...)
}

// ask reads the usage of pods, and keeps it.
func (u *Usage) ask(ctx context.Context, pods [][]*kube.Pod) error {
	places := map[string]bool{} // nodes, or namespaces
	for _, p := range slices.Concat(pods...) {
		if u.kubelets == nil {
			places[p.Namespace] = true
		} else if p.Spec.NodeName != "" {
			places[p.Spec.NodeName] = true
		}
	}
	var mu sync.Mutex
	var errs []error
	last := map[kube.UsageKey]kube.Usage{}
	take := func(k kube.UsageKey, v kube.Usage) {
		mu.Lock()
		defer mu.Unlock()
		last[k] = v
	}
	slots := make(chan struct{}, askedAtOnce)
	var group sync.WaitGroup
	for place := range places {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			var err error
			if u.kubelets == nil {
				err = u.cluster.MetricsUsage(ctx, place, take)
			} else {
				err = u.cluster.NodeUsage(ctx, u.kubelets, place, take)
			}
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	group.Wait()
	err := errors.Join(errs...)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last, u.lacks = last, nil
	if u.kubelets == nil && errors.Is(err, os.ErrNotExist) {
		u.lacks = []string{"memory of pods: the cluster has no resource metrics API (metrics.k8s.io): install metrics-server, or write kubernetes: {memory: kubelet}"}
	}
	return err
}

// unread and unlimited are reasons why a value is missing.
const (
	unread    = "no reading yet"
	unlimited = "unlimited"
)

// samples makes the samples of one pod.
func (u *Usage) samples(now time.Time, t *Target, p *kube.Pod) (all []*trimtab.Sample) {
	c := p.Container(t.Container)
	if c == nil {
		return nil
	}
	add := func(q quantity.Quantity, at time.Time, v *float64, missing string) {
		s := &trimtab.Sample{Workload: t.Workload, Host: t.Host, Instance: p.Name, Quantity: q, Time: at}
		if s.Missing = missing; v != nil {
			s.Value, s.Missing = *v, ""
		}
		all = append(all, s)
	}
	v, _ := u.reading(p, c.Name)
	at := v.Time
	if at.After(now) { // the node's clock is ahead
		at = now
	}
	add(quantity.WorkingSet, at, v.WorkingSet, unread)
	for q, v := range map[quantity.Quantity]*float64{quantity.MemoryUsage: v.Usage, quantity.MemoryAnonymous: v.Anonymous, quantity.MemorySwap: v.Swap, quantity.PressureMemorySome: v.PSI} {
		if v != nil {
			add(q, at, v, "")
		}
	}
	add(quantity.MemoryLimit, time.Time{}, limitOf(p, c), unlimited)
	return all
}

// limitOf returns the memory limit in force of a container; nil: it has none.
func limitOf(p *kube.Pod, c *kube.Container) *float64 {
	limits := c.Resources.Limits
	if s := p.StatusOf(c.Name); s != nil && s.Resources != nil && s.Resources.Limits[trimtab.Memory] > 0 {
		limits = s.Resources.Limits
	}
	if limits[trimtab.Memory] <= 0 {
		return nil
	}
	v := float64(limits[trimtab.Memory])
	return &v
}

// Kills tells of each container that the kernel killed for lack of memory, as soon as the API server
// knows: also of a pod that is deleted at once, and once for each container.
type Kills struct {
	Cluster *kube.Cluster
	Targets []Target
	// Publish is called with each sample. Killed is called for each kill.
	Publish func(context.Context, *trimtab.Sample)
	Killed  func(workload string)
	Logger  *slog.Logger

	mu sync.Mutex
	// told has the last end that was seen of each container, by uid of the pod and name.
	told map[[2]string]string
	// begun is false while the ends before the start are looked at.
	begun bool
	news  chan *trimtab.Sample
}

const (
	// forgetEvery is how often ends of pods that are gone are forgotten.
	forgetEvery = time.Minute
	// toldWithin is the largest age of an end that is told, after an outage of the API server.
	toldWithin = time.Hour
)

// Run tells of kills until ctx ends. One that is older than its start, or than an hour, is not told.
func (k *Kills) Run(ctx context.Context) error {
	k.told, k.news = map[[2]string]string{}, make(chan *trimtab.Sample, 1024)
	defer k.Cluster.FollowPods(func(p *kube.Pod) { k.seen(ctx, p) })()
	k.mu.Lock()
	k.begun = true
	k.mu.Unlock()
	forget := time.NewTicker(forgetEvery)
	defer forget.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case s := <-k.news:
			k.Publish(ctx, s)
		case <-forget.C:
			k.forget()
		}
	}
}

// forget drops the ends of pods that are gone.
func (k *Kills) forget() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for of := range k.told {
		if _, known := k.Cluster.ByUID(of[0]); !known {
			delete(k.told, of)
		}
	}
}

// seen looks at one state of a pod.
func (k *Kills) seen(ctx context.Context, p *kube.Pod) {
	ended := false
	for i := range p.Status.ContainerStatuses {
		ended = ended || p.Status.ContainerStatuses[i].Ended() != nil
	}
	if !ended {
		return
	}
	ref, ok := k.Cluster.OwnerOf(p)
	if !ok {
		if ref, ok = k.Cluster.ByUID(p.UID); !ok {
			return
		}
	}
	for _, t := range k.Targets {
		if c := p.Container(t.Container); t.Ref == ref && c != nil {
			k.ended(ctx, &t, p, c)
		}
	}
}

// ended tells of a container's end that was not told yet.
func (k *Kills) ended(ctx context.Context, t *Target, p *kube.Pod, c *kube.Container) {
	s := p.StatusOf(c.Name)
	if s == nil || s.Ended() == nil {
		return
	}
	end := s.Ended()
	of, id := [2]string{p.UID, c.Name}, end.ContainerID+" "+end.FinishedAt
	k.mu.Lock()
	known := k.told[of] == id
	k.told[of] = id
	begun := k.begun
	k.mu.Unlock()
	at, err := time.Parse(time.RFC3339, end.FinishedAt)
	old := err == nil && time.Since(at) > toldWithin
	if known || !begun || old || end.ExitCode == 0 && end.Reason != kube.OOMKilled {
		return
	}
	k.Logger.Warn("a container ended", "workload", t.Workload, "pod", p.Name, "container", c.Name, "reason", end.Reason, "exit_code", end.ExitCode, "at", end.FinishedAt)
	if end.Reason != kube.OOMKilled {
		return
	}
	k.Killed(t.Workload)
	now := time.Now().Round(0).UTC()
	sample := trimtab.Sample{Workload: t.Workload, Host: t.Host, Instance: p.Name, Source: SourceName, Time: now}
	if limit := limitOf(p, c); limit != nil {
		of := sample
		of.Quantity, of.Value = quantity.MemoryLimit, *limit
		k.tell(ctx, &of)
	}
	sample.Quantity, sample.Value = quantity.OOMKills, 1
	sample.Note = strings.TrimSpace(fmt.Sprintf("%s, exit code %d, container %s", end.Reason, end.ExitCode, c.Name))
	k.tell(ctx, &sample)
}

func (k *Kills) tell(ctx context.Context, s *trimtab.Sample) {
	select {
	case k.news <- s:
	case <-ctx.Done():
	}
}
