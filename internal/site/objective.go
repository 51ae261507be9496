package site

import (
	"fmt"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/config"
	"github.com/trimtab/trimtab/planner"
	"github.com/trimtab/trimtab/planner/dominant"
	"github.com/trimtab/trimtab/planner/endtoend"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/policy"
	"github.com/trimtab/trimtab/planner/welfare"
)

// PolicyOf returns the policy of an objective, with its parameters.
func PolicyOf(cfg *config.Config) (policy.Policy, error) {
	p := cfg.Planning
	switch cfg.Objective {
	case "njc":
		return fair.NJCPolicy{LoadWeight: p.LoadWeight}, nil
	case "egalitarian":
		return welfare.TieBreak{Objective: welfare.Egalitarian{Optimism: p.Optimism, LoadWeight: p.LoadWeight}}, nil
	case "social":
		return welfare.TieBreak{Objective: welfare.Social{Optimism: p.Optimism, MoveCost: p.MoveCost, LoadWeight: p.LoadWeight}}, nil
	case "nash":
		return welfare.TieBreak{Objective: welfare.Nash{Optimism: p.Optimism, MoveCost: p.MoveCost, LoadWeight: p.LoadWeight}}, nil
	case "resource-fair":
		return fair.ResourceFair{}, nil
	case "drf":
		return dominant.Policy{}, nil
	case config.EndToEnd:
		return endtoend.Policy{Optimism: p.Optimism, MoveCost: p.MoveCost, LoadWeight: p.LoadWeight}, nil
	}
	if _, least, ok := cfg.Own(); ok {
		_, scale, err := cfg.Worths()
		if err != nil {
			return nil, fmt.Errorf("objective %s: %w", cfg.Objective, err)
		}
		return welfare.TieBreak{Objective: welfare.Own{Title: cfg.Objective, Least: least, Scale: scale,
			Optimism: p.Optimism, MoveCost: p.MoveCost, LoadWeight: p.LoadWeight}}, nil
	}
	return nil, trimtab.Invalidf("objective %q", cfg.Objective)
}

// entitle adds groups, guarantees and the utilities of the operator's own objective to the
// planner's configuration, whose workloads are in the order of the file.
func entitle(c *planner.Config, cfg *config.Config) error {
	for _, g := range cfg.Groups {
		group := planner.GroupConfig{Path: g.Path, Weight: g.Weight, Guarantee: g.Guarantee}
		for _, r := range c.Others {
			if v := g.Guarantees.Of(r.Name); v > 0 {
				if group.Others == nil {
					group.Others = map[string]float64{}
				}
				group.Others[r.Name] = v
			}
		}
		c.Groups = append(c.Groups, group)
	}
	var worths []func(float64) float64
	if _, _, own := cfg.Own(); own {
		var err error
		if worths, _, err = cfg.Worths(); err != nil {
			return fmt.Errorf("objective %s: %w", cfg.Objective, err)
		}
	}
	for i := range c.Workloads {
		w := &c.Workloads[i]
		w.Group, w.Guarantee = cfg.Workloads[i].Group, cfg.Workloads[i].Guarantee
		if worths != nil {
			w.Worth = worths[i]
		}
	}
	return nil
}
