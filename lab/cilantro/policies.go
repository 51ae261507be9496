package cilantro

import (
	"slices"

	"github.com/trimtab/trimtab/lab/baseline"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/sim"
)

// maker makes the controller of one run.
type maker func(w *world) (Controller, error)

// Oracles returns the names of the policies that know the truth.
func Oracles() []string {
	return []string{"oracle-social", "oracle-egalitarian", "oracle-egalitarian-worst", "oracle-njc"}
}

// searches returns the names of the policies that try random allocations.
func searches() []string { return []string{"evoalg-social", "evoalg-egalitarian"} }

// entitled is the name of the policy without feedback.
const entitled = "resource-fair"

// oracles has what each maximises.
func oracles() map[string]func(o *oracle, r int) ([]int, error) {
	return map[string]func(o *oracle, r int) ([]int, error){
		"oracle-social":            social,
		"oracle-egalitarian":       egalitarian(meanUtility),
		"oracle-egalitarian-worst": spread(egalitarian(worstUtility)),
		"oracle-njc":               njc,
	}
}

// Names returns every policy that an experiment can run, those of the planner
// first.
func (x *Experiment) Names() []string {
	var names []string
	for _, p := range x.Policies {
		names = append(names, p.Name())
	}
	for _, n := range slices.Concat(Oracles(), baseline.Names(), searches(), []string{entitled}) {
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

// maker finds a policy by name.
func (x *Experiment) maker(name string) (maker, error) {
	if p := x.learns(name); p != nil {
		return online(x.Online, p), nil
	}
	if solve, ok := oracles()[name]; ok {
		return func(w *world) (Controller, error) { return &oracle{world: w, now: shares(w), solve: solve}, nil }, nil
	}
	if slices.Contains(baseline.Names(), name) {
		return func(w *world) (Controller, error) { return newHeuristic(w, name) }, nil
	}
	switch name {
	case "evoalg-social", "evoalg-egalitarian":
		return func(w *world) (Controller, error) { return newEvolving(w, name == "evoalg-egalitarian"), nil }, nil
	case entitled:
		return func(w *world) (Controller, error) { return fixed{shares(w)}, nil }, nil
	}
	return nil, &sim.UnknownError{What: "policy", Name: name, Known: x.Names()}
}

// learns returns the policy of the planner with a name; nil: there is none.
func (x *Experiment) learns(name string) policy.Policy {
	for _, p := range x.Policies {
		if p.Name() == name {
			return p
		}
	}
	return nil
}

func online(o Online, p policy.Policy) maker {
	return func(w *world) (Controller, error) { return newSteps(w, o, p) }
}
