package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/expr-lang/expr/vm"

	"github.com/trimtab/trimtab"
)

// ownVariables are the variables in an objective that the operator wrote.
type ownVariables struct {
	P      float64 `expr:"p"`
	SLO    float64 `expr:"slo"`
	M      float64 `expr:"m"`
	U      float64 `expr:"u"`
	Weight float64 `expr:"weight"`
}

func ownLanguage() language {
	return language{"objective", "write sum(…) or min(…) of arithmetic on u, weight, p, slo and m = min(1, p/slo); functions: min, max, abs, sqrt, exp, log", ownVariables{}}
}

// Own returns the expression of an objective of the operator's, sum(EXPRESSION)
// or min(EXPRESSION); ok is false for one of the named objectives.
func (c *Config) Own() (expression string, least, ok bool) {
	for _, kind := range []string{"sum(", "min("} {
		if inner, found := strings.CutPrefix(c.Objective, kind); found && strings.HasSuffix(inner, ")") {
			return strings.TrimSuffix(inner, ")"), kind == "min(", true
		}
	}
	return "", false, false
}

// Worths compiles the operator's objective for every workload: what performance
// p is worth, as a share of scale, which is the most that any of them is worth.
// The error is [trimtab.ErrInvalid]: of an expression that does not compile, is
// negative or no number, or falls with p.
func (c *Config) Worths() (of []func(performance float64) float64, scale float64, err error) {
	text, _, ok := c.Own()
	if !ok {
		return nil, 0, trimtab.Invalidf("objective %q is not an expression", c.Objective)
	}
	program, err := compile(text, ownLanguage())
	if err != nil {
		return nil, 0, err
	}
	raw := make([]func(float64) (float64, error), len(c.Workloads))
	for i := range c.Workloads {
		run, top, err := c.Workloads[i].worth(program)
		if err != nil {
			return nil, 0, err
		}
		raw[i], scale = run, math.Max(scale, top)
	}
	if scale == 0 {
		scale = 1 // worth nothing, whatever they get
	}
	of = make([]func(float64) float64, len(raw))
	for i, run := range raw {
		of[i] = func(p float64) float64 {
			v, err := run(p)
			if err != nil {
				return 0
			}
			return clamp(v / scale)
		}
	}
	return of, scale, nil
}

// worth returns the expression for w and its value at the end of the grid.
func (w *Workload) worth(program *vm.Program) (run func(float64) (float64, error), top float64, err error) {
	slo, weight := w.SLO.Target(), w.Weight
	if !(slo > 0) {
		slo = 1
	}
	weight = cmp.Or(weight, 1)
	utility, err := Utility(w.Utility, slo)
	if err != nil {
		return nil, 0, nil // its own mistake, reported at its place
	}
	run = func(p float64) (float64, error) {
		machine := vm.VM{MemoryBudget: expressionMemory}
		out, err := machine.Run(program, ownVariables{P: p, SLO: slo, M: clamp(p / slo), U: utility(p), Weight: weight})
		if err != nil {
			return 0, err
		}
		v, ok := out.(float64)
		if !ok || math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, fmt.Errorf("it is %v", out)
		}
		return v, nil
	}
	for i := range gridPoints + 1 {
		p := slo * gridSpan * float64(i) / gridPoints
		v, err := run(p)
		switch {
		case err != nil:
			return nil, 0, &expressionError{1, 0, fmt.Sprintf("objective has no value for %s at p = %.4g: %s", clip(w.Name), p, firstLine(err.Error())), "it must be a number for every p >= 0; guard a division or log with max(p, 1e-9)"}
		case v < 0:
			return nil, 0, &expressionError{1, 0, fmt.Sprintf("objective is %.4g for %s at p = %.4g", v, clip(w.Name), p), "add a constant, so that it is never negative"}
		case v < top-1e-9*math.Max(1, top):
			return nil, 0, &expressionError{1, 0, fmt.Sprintf("objective falls for %s at p = %.4g, from %.4g to %.4g", clip(w.Name), p, top, v), "more performance must never be worth less"}
		}
		top = math.Max(top, v)
	}
	return run, top, nil
}

// planning checks the objective's expression and parameters.
func (v *validator) planning() {
	c := v.config
	if text, _, own := c.Own(); own {
		_, _, err := c.Worths()
		var e *expressionError
		if errors.As(err, &e) {
			column := e.column
			if e.line == 1 {
				column += len(c.Objective) - len(text) - 1 // behind "sum("
			}
			v.report(v.inside("objective", e.line, column), e.message, e.hint)
		}
	}
}

// sharesByGroup reports whether the objective knows groups and guarantees.
func (c *Config) sharesByGroup() bool {
	return slices.Contains([]string{"njc", "resource-fair", "drf"}, c.Objective)
}

// groups checks the groups, and those that workloads name.
func (v *validator) groups() {
	c, paths := v.config, map[string]bool{}
	sum, further := 0.0, map[string]float64{}
	for i := range c.Groups {
		g, at := &c.Groups[i], fmt.Sprintf("groups[%d]", i)
		if v.has(at + ".path") {
			v.groupPath(at+".path", g.Path)
		} else {
			v.fail(at, "this group has no path", "write - path: shop")
		}
		if paths[g.Path] && g.Path != "" {
			v.fail(at+".path", fmt.Sprintf("a second group %q", clip(g.Path)), "list each group once")
		}
		paths[g.Path] = true
		if v.guarantee(at+".guarantee", g.Guarantee); !strings.Contains(g.Path, "/") {
			sum += g.Guarantee
			g.Guarantees.check(v, at, nil, further)
		} else {
			g.Guarantees.check(v, at, nil, map[string]float64{})
		}
	}
	named := map[string]bool{}
	for i := range c.Workloads {
		w, at := &c.Workloads[i], fmt.Sprintf("workloads[%d]", i)
		if v.has(at + ".group") {
			v.groupPath(at+".group", w.Group)
		}
		for path := w.Group; path != ""; path = path[:max(0, strings.LastIndexByte(path, '/'))] {
			named[path] = true
		}
		if v.guarantee(at+".guarantee", w.Guarantee); w.Group == "" {
			sum += w.Guarantee
			w.Guarantees.check(v, at, &w.Knob, further)
		} else {
			w.Guarantees.check(v, at, &w.Knob, map[string]float64{})
		}
		if !c.sharesByGroup() && (w.Group != "" || w.Guarantee > 0) {
			key := at + ".group"
			if w.Group == "" {
				key = at + ".guarantee"
			}
			v.warn(key, fmt.Sprintf("objective %s knows no groups and guarantees", clip(c.Objective)), "they count for njc, resource-fair and drf")
		}
	}
	v.guaranteedSums(further)
	for i := range c.Groups {
		if path := c.Groups[i].Path; path != "" && !named[path] {
			v.warn(fmt.Sprintf("groups[%d].path", i), fmt.Sprintf("no workload is in group %q", clip(path)), "write group: "+clip(path)+" in a workload, or remove it")
		}
	}
	if capacity := c.Pool.Capacity(); capacity > 0 && sum > capacity*(1+1e-9) {
		v.fail(c.Pool.keyOfFirst(), fmt.Sprintf("the guarantees add up to %.6g, more than the capacity %v", sum, capacity), "lower some guarantee or raise the capacity")
	}
}

// groupPath checks a path of names.
func (v *validator) groupPath(at, path string) {
	if strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") || strings.Contains(path, "//") {
		v.fail(at, fmt.Sprintf("group %q has an empty part", clip(path)), "write parts joined by one '/', such as shop/web")
		return
	}
	v.name(at, "group", path)
}

func (v *validator) guarantee(at string, g float64) {
	if v.has(at) && !(g > 0 && g <= 1e6) {
		v.fail(at, fmt.Sprintf("guarantee is %v, want more than 0 and at most 1000000", g), "write the amount in cores or workers, or remove the key")
	}
}
