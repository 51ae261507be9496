package kubernetes

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/kube"
)

const (
	// recommendAfter is the least time between two writes of one VPA object, as in VPA's own
	// recommender.
	recommendAfter = time.Minute
	// remembered is the window of which the highest load counts: VPA may act on an object only once
	// in hours, and the result should not depend on the hour.
	remembered = 24 * time.Hour
)

// peak records the upper bound of the load in an estimate.
func (s *state) peak(e *trimtab.Estimate, now time.Time) {
	if e.Load == nil || e.Hold != nil {
		return
	}
	hour := now.Unix() / 3600
	s.peaks[hour] = math.Max(s.peaks[hour], e.Load.Upper)
	for h := range s.peaks {
		if h < hour-int64(remembered/time.Hour) {
			delete(s.peaks, h)
		}
	}
}

// highest is the highest bound of the load that is remembered.
func (s *state) highest() (most float64) {
	for _, v := range s.peaks {
		most = math.Max(most, v)
	}
	return most
}

// advice is the recommended amount of a resource for one pod, as a limit.
type advice struct{ target, lower, upper float64 }

// adviceOf reads from the learnt curve, at the day's highest load, the least allocations whose
// mean and whose bounds meet the SLO. why says why there is no fresh advice.
func (e *Exporter) adviceOf(s *state, resource string, pods int) (a advice, why string) {
	w := e.newest.Of(s.Name)
	if w == nil || w.Estimate.Value == nil {
		return a, "nothing was told of the workload yet"
	}
	x := w.Estimate.Value
	switch {
	case w.Estimate.Age(e.now()) > 2*e.config.Round:
		return a, "the newest estimate is of " + x.Time.UTC().Format(time.RFC3339)
	case x.Hold != nil:
		return a, x.Hold.Text
	case pods == 0:
		return a, "no pod serves"
	case !(s.SLO > 0):
		return a, "the workload has no SLO"
	}
	curve := x.Curve
	if resource != e.config.Resource {
		curve = x.Curves[resource]
	}
	if curve == nil {
		return a, "nothing was learnt of its " + resource
	}
	if load := s.highest(); load > curve.Load {
		curve = curve.At(load)
	}
	each := func(bound func(trimtab.Band) float64) float64 { return curve.Least(1, s.SLO, bound) / float64(pods) }
	a.target = each(func(b trimtab.Band) float64 { return b.Mean })
	a.lower = each(func(b trimtab.Band) float64 { return b.Upper })
	a.upper = each(func(b trimtab.Band) float64 { return b.Lower })
	if a.target < 0 {
		return a, "no allocation that was tried meets the SLO"
	}
	if a.upper < 0 { // no allocation that was tried is proven to suffice
		a.upper = math.Max(s.Max[resource], a.target)
	}
	if a.lower < 0 {
		a.lower = a.target
	}
	a.lower, a.upper = math.Min(a.lower, a.target), math.Max(a.upper, a.target)
	return a, ""
}

// recommend writes the status of the VPAs that name this recommender.
func (e *Exporter) recommend(ctx context.Context, cluster *kube.Cluster) {
	if e.config.Recommender == "" || !e.tries("recommendation") {
		return
	}
	all, err := cluster.Recommended(e.config.Recommender)
	if err != nil {
		return // the part that watches it reports this
	}
	for _, v := range all {
		if e.now().Sub(e.recommended[v.UID]) < recommendAfter {
			continue
		}
		recommendations, why := e.recommendation(cluster, v)
		conditions, news := e.conditions(v, why)
		if !news && same(v, recommendations) {
			continue
		}
		e.recommended[v.UID] = e.now()
		if err := cluster.Recommend(ctx, v, recommendations, conditions); err != nil {
			e.failed("recommendation", err)
			return
		}
		e.wrote("recommendation")
	}
}

// recommendation returns what to write into a VPA; nil, with the reason: it stays unchanged.
func (e *Exporter) recommendation(cluster *kube.Cluster, v *kube.VPA) (all []kube.Recommendation, why string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var s *state
	for _, w := range e.workloads {
		if v.Of(w.Ref) {
			s = w
		}
	}
	if s == nil {
		return nil, "no workload of trimtab's configuration is its target"
	}
	of, err := cluster.WorkloadOf(s.Ref)
	if err != nil {
		return nil, err.Error()
	}
	template := &kube.Pod{Spec: of.Spec.Template.Spec}
	c := template.Container(s.Container)
	pods, err := cluster.PodsOf(s.Ref)
	if err != nil || c == nil {
		return nil, "its pods, or its container, are not known"
	}
	serving := 0
	for _, p := range pods {
		if p.Ready() {
			serving++
		}
	}
	r := kube.Recommendation{ContainerName: c.Name, Target: kube.List{}, LowerBound: kube.List{}, UpperBound: kube.List{}, UncappedTarget: kube.List{}}
	for _, resource := range []string{trimtab.CPU, trimtab.Memory} {
		least, most, ratio, controlled := v.Policy(c.Name, resource)
		if !controlled {
			continue
		}
		a, no := e.adviceOf(s, resource, serving)
		if no != "" {
			why = no
			continue
		}
		share := 1.0
		request, limit := float64(c.Resources.Requests[resource]), float64(c.Resources.Limits[resource])
		if ratio && request > 0 && limit > request {
			share = request / limit // VPA sets the limit in this ratio
		}
		uncapped := roundUp(resource, a.target*share)
		target, lower, upper := uncapped, roundUp(resource, a.lower*share), roundUp(resource, a.upper*share)
		if old := recommendedBefore(v, c.Name); old != nil && e.now().Sub(e.begun) < remembered {
			// The loads of the day before are unknown, so nothing is lowered yet.
			target, lower = math.Max(target, float64(old.Target[resource])), math.Max(lower, float64(old.LowerBound[resource]))
			upper = math.Max(upper, target)
		}
		capped := func(x float64) kube.Quantity { return kube.Quantity(math.Min(math.Max(x, least), most)) }
		r.Target[resource], r.LowerBound[resource], r.UpperBound[resource] = capped(target), capped(lower), capped(upper)
		r.UncappedTarget[resource] = kube.Quantity(uncapped)
	}
	if len(r.Target) == 0 {
		if why == "" {
			why = "its policy leaves nothing to recommend"
		}
		return nil, why
	}
	return []kube.Recommendation{r}, ""
}

// roundUp returns the least value of whole steps that is not below v: 1m of CPU, 1 MiB.
func roundUp(resource string, v float64) float64 {
	if resource == trimtab.Memory {
		return math.Ceil(v/(1<<20)) * (1 << 20)
	}
	return math.Ceil(v*1000-1e-6) / 1000
}

// recommendedBefore returns the object's recommendation for a container; nil: it has none.
func recommendedBefore(v *kube.VPA, container string) *kube.Recommendation {
	if v.Status.Recommendation == nil {
		return nil
	}
	for i := range v.Status.Recommendation.ContainerRecommendations {
		if r := &v.Status.Recommendation.ContainerRecommendations[i]; r.ContainerName == container {
			return r
		}
	}
	return nil
}

// recommendBand is the relative difference below which nothing is written.
const recommendBand = 0.02

// same reports whether the object says so already.
func same(v *kube.VPA, all []kube.Recommendation) bool {
	near := func(a, b kube.List) bool {
		if len(a) != len(b) {
			return false
		}
		for resource, x := range a {
			if y, ok := b[resource]; !ok || math.Abs(float64(x-y)) > recommendBand*math.Abs(float64(x)) {
				return false
			}
		}
		return true
	}
	for i := range all {
		r, old := &all[i], recommendedBefore(v, all[i].ContainerName)
		if old == nil || !near(r.Target, old.Target) || !near(r.LowerBound, old.LowerBound) || !near(r.UpperBound, old.UpperBound) || !near(r.UncappedTarget, old.UncappedTarget) {
			return false
		}
	}
	return true
}

// conditions returns the object's conditions including trimtab's; news reports whether they
// changed.
func (e *Exporter) conditions(v *kube.VPA, why string) (all []kube.Condition, news bool) {
	at := e.now().UTC().Format(time.RFC3339)
	provided := kube.Condition{Type: "RecommendationProvided", Status: "True", Reason: "Learnt", LastTransitionTime: at,
		Message: "from the curve that trimtab learnt, at the highest load of the last 24 hours"}
	doubt := kube.Condition{Type: "LowConfidence", Status: "True", Reason: "NoFreshAdvice", LastTransitionTime: at,
		Message: fmt.Sprintf("trimtab leaves the recommendation as it is: %.300s", why)}
	if why != "" && v.Status.Recommendation == nil {
		provided.Status, provided.Reason, provided.Message = "False", "NoFreshAdvice", fmt.Sprintf("trimtab has no advice yet: %.300s", why)
	}
	for _, old := range v.Status.Conditions {
		if old.Type != provided.Type && old.Type != doubt.Type {
			all = append(all, old)
		}
	}
	for _, c := range []*kube.Condition{&provided, &doubt} {
		old := v.Condition(c.Type)
		if c == &doubt && why == "" {
			news = news || old != nil
			continue
		}
		if c == &provided && why != "" && v.Status.Recommendation != nil && old != nil {
			all = append(all, *old) // what it says still stands
			continue
		}
		switch {
		case old == nil || old.Status != c.Status || old.Reason != c.Reason:
			news = true
		default:
			c.LastTransitionTime, c.Message = old.LastTransitionTime, old.Message
		}
		all = append(all, *c)
	}
	return all, news
}
