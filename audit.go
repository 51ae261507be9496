package trimtab

import (
	"github.com/trimtab/trimtab/internal/valid"
)

// MaxAudited bounds the workloads that one [Audit] lists; the figures are over
// all of them.
const MaxAudited = 64

// Fairness is how fair one allocation is. The satisfaction of a workload with
// demand d under an allocation a is u(a) = min(1, min_r a_r / d_r), the part of
// its demand that it can use; all figures are in that unit, in [0, 1].
type Fairness struct {
	// Envy is the greatest gain that a workload would have with another's allocation, scaled to
	// its own entitlement; Envious counts the workloads with such a gain.
	Envy    float64 `json:"envy"`
	Envious int     `json:"envious"`
	// Shortfall is the most that a workload is worse off than with its entitlement's share of
	// every resource; Short counts the workloads that are.
	Shortfall float64 `json:"shortfall"`
	Short     int     `json:"short"`
	// Slack is the most that a workload could gain from free capacity; 0 is Pareto efficient.
	Slack float64 `json:"slack"`
	// Least is the lowest satisfaction.
	Least float64 `json:"least"`
}

// Audit answers "is this fair?" for one round.
type Audit struct {
	// Now judges what the workloads have; Target what the solver wants for them.
	Now    Fairness  `json:"now"`
	Target *Fairness `json:"target,omitempty"`
	// Resources are in the pool's order.
	Resources []AuditedResource `json:"resources"`
	// Workloads are the allocations of Now, in order of name: the worst ones if there are more
	// than MaxAudited, Omitted being the number left out.
	Workloads []AuditedWorkload `json:"workloads,omitempty"`
	Omitted   int               `json:"omitted,omitempty"`
}

// AuditedResource is one resource of an audit.
type AuditedResource struct {
	Resource string  `json:"resource"`
	Capacity float64 `json:"capacity"`
	// Used is the sum that the workloads have; Demanded of what they demand.
	Used     float64 `json:"used"`
	Demanded float64 `json:"demanded"`
	// Binds counts the workloads that this resource keeps from more.
	Binds int `json:"binds"`
}

// AuditedWorkload is one workload of an audit.
type AuditedWorkload struct {
	Workload string `json:"workload"`
	// Entitlement is its part of the pool by weight, in (0, 1].
	Entitlement float64 `json:"entitlement"`
	// Share is its dominant share, the greatest share of any resource's capacity that it has, and
	// Dominant that resource.
	Share    float64 `json:"share"`
	Dominant string  `json:"dominant"`
	// Satisfaction is the part of its demand that it can use; nil while the demand is unknown,
	// when its other figures are unknown too.
	Satisfaction *float64 `json:"satisfaction,omitempty"`
	// Binding is the resource that keeps it from more; "" when it is satisfied.
	Binding string `json:"binding,omitempty"`
	// Shortfall, Envy and Slack are as in Fairness, for this workload; Envies is the workload
	// whose allocation it would prefer.
	Shortfall float64 `json:"shortfall,omitempty"`
	Envy      float64 `json:"envy,omitempty"`
	Envies    string  `json:"envies,omitempty"`
	Slack     float64 `json:"slack,omitempty"`
}

// Validate checks every number.
func (a *Audit) Validate() error {
	fairness := []Fairness{a.Now}
	if a.Target != nil {
		fairness = append(fairness, *a.Target)
	}
	for _, f := range fairness {
		for _, v := range []float64{f.Envy, f.Shortfall, f.Slack, f.Least} {
			if err := valid.Fraction("audit", v); err != nil {
				return err
			}
		}
	}
	if len(a.Workloads) > MaxAudited {
		return Invalidf("audit: %d workloads, limit %d", len(a.Workloads), MaxAudited)
	}
	if len(a.Resources) > MaxResources {
		return Invalidf("audit: %d resources, limit %d", len(a.Resources), MaxResources)
	}
	for _, r := range a.Resources {
		if err := valid.Named("audited resource", r.Resource); err != nil {
			return err
		}
		for _, v := range []float64{r.Capacity, r.Used, r.Demanded} {
			if err := valid.NonNegative("audit of "+r.Resource, v); err != nil {
				return err
			}
		}
	}
	for _, w := range a.Workloads {
		if err := valid.Texts("audit of "+w.Workload, w.Workload, w.Dominant, w.Binding, w.Envies); err != nil {
			return err
		}
		for _, v := range []float64{w.Entitlement, w.Share, w.Shortfall, w.Envy, w.Slack} {
			if err := valid.NonNegative("audit of "+w.Workload, v); err != nil {
				return err
			}
		}
		if w.Satisfaction != nil {
			if err := valid.Fraction("satisfaction of "+w.Workload, *w.Satisfaction); err != nil {
				return err
			}
		}
	}
	return nil
}
