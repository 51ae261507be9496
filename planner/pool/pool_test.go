package pool_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/planner/fair"
	"github.com/trimtab/trimtab/planner/pool"
)

func valid() pool.Config {
	return pool.Config{Pool: "p", Resource: "cpu", Capacity: 8, Unit: 0.1, Round: time.Second, Policy: fair.NJCPolicy{},
		Workloads: []pool.Workload{{Name: "c", Mode: trimtab.Act, SLO: 0.9, Max: 8}, {Name: "a", Mode: trimtab.Act, SLO: 0.9, Max: 8}}}
}

func TestAWrongConfigNamesItsField(t *testing.T) {
	for field, spoil := range map[string]func(*pool.Config){
		"pool":       func(c *pool.Config) { c.Pool = "" },
		"capacity":   func(c *pool.Config) { c.Capacity = math.NaN() },
		"unit":       func(c *pool.Config) { c.Unit = 1e-9 },
		"policy":     func(c *pool.Config) { c.Policy = nil },
		"beta":       func(c *pool.Config) { c.Beta = 2 },
		"lease":      func(c *pool.Config) { c.Lease = c.Round },
		"round":      func(c *pool.Config) { c.Round = -1 },
		"guard":      func(c *pool.Config) { c.Guard.Fall = 2 },
		"name":       func(c *pool.Config) { c.Workloads[0].Name = "a" },
		"mode":       func(c *pool.Config) { c.Workloads[0].Mode = "acr" },
		"slo":        func(c *pool.Config) { c.Workloads[0].SLO = 0 },
		"min":        func(c *pool.Config) { c.Workloads[0].Min = 9 },
		"weight":     func(c *pool.Config) { c.Workloads[0].Weight = -1 },
		"max -1":     func(c *pool.Config) { c.Workloads[0].Max = -1 },
		"default +I": func(c *pool.Config) { c.Workloads[0].Default = math.Inf(1) },
	} {
		c := valid()
		spoil(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), strings.Fields(field)[0]) {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestWhatIsLeftOutGetsItsDefault(t *testing.T) {
	c := valid()
	c.Workloads[0].Max = 20
	d := c.WithDefaults()
	if d.Lease != 3*d.Round || d.Workloads[0].Max != 8 || d.Workloads[1].Weight != 1 || d.Workloads[1].Utility == nil {
		t.Errorf("%+v", d)
	}
	if c.Workloads[0].Max != 20 {
		t.Error("the configuration itself was changed")
	}
}

func TestAStepGoesAtMostSoManyUnitsAndEndsOnWholeOnes(t *testing.T) {
	r := pool.Resource{Name: "cpu", Unit: 0.1, Step: 10}
	for _, c := range []struct {
		now  float64
		aim  int
		want float64
	}{{4, 80, 5}, {4, 10, 3}, {4, 45, 4.5}, {4.05, 40, 4}, {4.05, 80, 5}} {
		if got := r.StepTo(c.now, c.aim); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("from %v to %d units: %v, want %v", c.now, c.aim, got, c.want)
		}
	}
}
