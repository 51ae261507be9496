package trimtab

import (
	"cmp"

	"github.com/trimtab/trimtab/internal/valid"
)

// KnobID is the name of a knob, the same in plans, outcomes, holdings, ledger
// and journal: one resource of one instance of a workload on one host.
type KnobID struct {
	// Pool and Host are those of the outcome or holding that contains the name; all actions of a
	// plan are of its pool.
	Pool     string `json:"pool,omitempty"`
	Host     string `json:"host,omitempty"`
	Workload string `json:"workload"`
	// Instance is one of several copies of the workload on the host; "": there is only one.
	Instance string `json:"instance,omitempty"`
	// Resource is the resource that the knob limits: "cpu" in cores, "workers" in
	// processes, "memory" in bytes, or another that the pool names: see [ResourceOf].
	Resource string `json:"resource"`
}

// Name returns the knob's name for people who know the host.
func (k *KnobID) Name() string {
	if k.Instance != "" {
		return k.Resource + " of " + k.Workload + "@" + k.Instance
	}
	return k.Resource + " of " + k.Workload
}

// Compare orders knobs by pool, workload, resource, host and instance.
func (k KnobID) Compare(l KnobID) int {
	return cmp.Or(cmp.Compare(k.Pool, l.Pool), cmp.Compare(k.Workload, l.Workload), cmp.Compare(k.Resource, l.Resource),
		cmp.Compare(k.Host, l.Host), cmp.Compare(k.Instance, l.Instance))
}

// validate checks that the knob has a name, and is of that pool and host.
func (k *KnobID) validate(pool, host string) error {
	if err := valid.Named("workload of a knob", k.Workload); err != nil {
		return err
	}
	if err := valid.Named("resource of "+k.Workload, k.Resource); err != nil {
		return err
	}
	switch {
	case k.Pool != pool:
		return Invalidf("%.300s: of pool %.40q, in a message of pool %.40q", k.Name(), k.Pool, pool)
	case k.Host != host:
		return Invalidf("%.300s: on host %.40q, in a message of host %.40q", k.Name(), k.Host, host)
	case len(k.Instance) > 253:
		return Invalidf("%.300s: want an instance of at most 253 bytes", k.Name())
	}
	return nil
}
