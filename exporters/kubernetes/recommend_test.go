package kubernetes

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/internal/kube/kubetest"
)

// withVPA makes a VPA with this policy that names trimtab.
func withVPA(policy, status string) func(*kubetest.Server) {
	return func(s *kubetest.Server) {
		s.Put(vpaAt, fmt.Sprintf(`{"kind":"VerticalPodAutoscaler","apiVersion":"autoscaling.k8s.io/v1","spec":{"targetRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"checkout"},"recommenders":[{"name":"trimtab"}],"resourcePolicy":{"containerPolicies":[%s]}},"status":{%s}}`, policy, status))
	}
}

func asRecommender(c *Config) { c.Recommender = "trimtab" }

// curve needs 2 cores on average, 1.6 at best and 3 at worst, for 100 requests a second.
func curve() *trimtab.Curve {
	return &trimtab.Curve{Load: 100, Level: 0.9, Knots: []trimtab.Knot{
		{Allocation: 1, Band: trimtab.Band{Lower: 0.1, Mean: 0.3, Upper: 0.5}},
		{Allocation: 1.6, Band: trimtab.Band{Lower: 0.5, Mean: 0.8, Upper: 0.95}},
		{Allocation: 2, Band: trimtab.Band{Lower: 0.7, Mean: 0.95, Upper: 1}},
		{Allocation: 3, Band: trimtab.Band{Lower: 0.95, Mean: 0.99, Upper: 1}},
	}}
}

func (x *told) estimate(load float64, change func(*trimtab.Estimate)) {
	e := &trimtab.Estimate{Workload: "checkout", Time: x.at, Curve: curve().At(load), Load: &trimtab.LoadForecast{Now: load, Mean: load, Upper: load, Level: 0.9}}
	if change != nil {
		change(e)
	}
	x.e.Observe(e)
}

// says is the recommendation of the object: target, lower bound, upper bound, uncapped.
func (x *told) says() string {
	all, _ := kubetest.Sub(x.Get(vpaAt), "status", "recommendation")["containerRecommendations"].([]any)
	text := ""
	for _, r := range all {
		c := r.(kubetest.Object)
		text += fmt.Sprintf("%v %v %v %v %v", c["containerName"], c["target"], c["lowerBound"], c["upperBound"], c["uncappedTarget"])
	}
	return strings.ReplaceAll(text, "map", "")
}

// condition is STATUS REASON of a condition of the object.
func (x *told) condition(kind string) string {
	all, _ := kubetest.Sub(x.Get(vpaAt), "status")["conditions"].([]any)
	for _, c := range all {
		if c := c.(kubetest.Object); c["type"] == kind {
			return fmt.Sprint(c["status"], " ", c["reason"])
		}
	}
	return ""
}

func TestAVPAThatNamesTrimtabGetsTheLeastThatMeetsTheSLOWithTheBandOfTheCurve(t *testing.T) {
	for policy, want := range map[string]string{
		// Two pods; the limit is five times the request in the template.
		``: "app [cpu:200m] [cpu:160m] [cpu:300m] [cpu:200m]",
		`{"containerName":"*","controlledValues":"RequestsOnly"}`:                                     "app [cpu:1000m] [cpu:800m] [cpu:1500m] [cpu:1000m]",
		`{"containerName":"app","minAllowed":{"cpu":"180m"},"maxAllowed":{"cpu":"250m"}}`:             "app [cpu:200m] [cpu:180m] [cpu:250m] [cpu:200m]",
		`{"containerName":"app","minAllowed":{"cpu":"400m"}}`:                                         "app [cpu:400m] [cpu:400m] [cpu:400m] [cpu:200m]",
		`{"containerName":"app","maxAllowed":{"cpu":"50m"}},{"containerName":"*","mode":"Off"}`:       "app [cpu:50m] [cpu:50m] [cpu:50m] [cpu:200m]",
		`{"containerName":"app","controlledResources":["memory"]}`:                                    "",
		`{"containerName":"app","mode":"Off"}`:                                                        "",
		`{"containerName":"side","mode":"Off"},{"containerName":"app","controlledResources":["cpu"]}`: "app [cpu:200m] [cpu:160m] [cpu:300m] [cpu:200m]",
	} {
		x := shop(t, asRecommender, withVPA(policy, ""))
		x.estimate(100, nil)
		x.later(0)
		if got := x.says(); got != want {
			t.Errorf("%s: %s, want %s", policy, got, want)
		}
		if got := x.condition("RecommendationProvided"); want != "" && got != "True Learnt" || want == "" && got != "False NoFreshAdvice" {
			t.Errorf("%s: condition %s", policy, got)
		}
	}
}

func TestWithoutFreshAdviceAVPAKeepsItsRecommendationAndGetsACondition(t *testing.T) {
	for why, change := range map[string]func(*trimtab.Estimate){
		"old":            func(e *trimtab.Estimate) { e.Time = e.Time.Add(-time.Minute) },
		"held":           func(e *trimtab.Estimate) { e.Hold = &trimtab.Held{Text: "performance is missing"} },
		"nothing learnt": func(e *trimtab.Estimate) { e.Curve = nil },
		"no allocation is enough": func(e *trimtab.Estimate) {
			e.Curve = &trimtab.Curve{Load: 100, Knots: []trimtab.Knot{{Allocation: 1, Band: trimtab.Band{Upper: 0.5}}}}
		},
	} {
		x := shop(t, asRecommender, withVPA("", `"conditions":[{"type":"NoPodsMatched","status":"False","reason":"x"}]`))
		x.estimate(100, nil)
		x.later(0)
		want := x.says()
		x.at = x.at.Add(2 * time.Minute)
		x.estimate(100, change)
		x.later(0)
		if got := x.says(); got == "" || got != want {
			t.Errorf("%s: %s, was %s", why, got, want)
		}
		if got := x.condition("LowConfidence"); got != "True NoFreshAdvice" || x.condition("NoPodsMatched") == "" {
			t.Errorf("%s: condition %s", why, got)
		}
		writes := len(x.Writes())
		for range 5 {
			x.at = x.at.Add(2 * time.Minute)
			x.estimate(100, change)
			x.later(0)
		}
		if more := len(x.Writes()) - writes; more != 0 {
			t.Errorf("%s: it wrote the same %d times again", why, more)
		}
		x.estimate(100, nil)
		x.at = x.at.Add(time.Second)
		x.later(2 * time.Second)
		x.estimate(100, nil)
		x.later(0)
		if got := x.condition("LowConfidence"); got != "" {
			t.Errorf("%s: with fresh advice it is %s", why, got)
		}
	}
}

func TestARecommendationIsForTheHighestLoadOfADayAndDoesNotFallOnAStart(t *testing.T) {
	x := shop(t, asRecommender, withVPA("", ""))
	hour := func(load float64) {
		x.at = x.at.Add(time.Hour)
		x.estimate(load, nil)
		x.later(0)
	}
	hour(200)
	for range 23 {
		hour(50)
	}
	if got := x.says(); got != "app [cpu:400m] [cpu:320m] [cpu:600m] [cpu:400m]" {
		t.Errorf("a day after the peak: %s", got)
	}
	for range 4 {
		hour(50)
	}
	if got := x.says(); got != "app [cpu:100m] [cpu:80m] [cpu:150m] [cpu:100m]" {
		t.Errorf("more than a day after it: %s", got)
	}
	again := shop(t, asRecommender, withVPA("", `"recommendation":{"containerRecommendations":[{"containerName":"app","target":{"cpu":"400m"},"lowerBound":{"cpu":"320m"},"upperBound":{"cpu":"600m"}}]}`))
	again.estimate(50, nil)
	again.later(0)
	if got := again.says(); got != "app [cpu:400m] [cpu:320m] [cpu:400m] [cpu:100m]" {
		t.Errorf("a process that began just now: %s", got)
	}
}

func TestAVPAOfAnotherRecommenderOrAnUnknownTargetIsNotRecommendedFor(t *testing.T) {
	x := shop(t, func(c *Config) { c.Recommender = "other" }, withVPA("", ""))
	x.estimate(100, nil)
	x.later(0)
	if w := x.Writes(); len(w) != 0 {
		t.Errorf("it wrote %q", w)
	}
	x = shop(t, func(c *Config) { asRecommender(c); c.Workloads[0].Ref.Name = "cart" }, withVPA("", ""))
	x.estimate(100, nil)
	x.later(0)
	if x.says() != "" || x.condition("RecommendationProvided") != "False NoFreshAdvice" {
		t.Errorf("%s, %s", x.says(), x.condition("RecommendationProvided"))
	}
}

func TestTargetsAreBetweenTheirBoundsForEveryCurve(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		e := &Exporter{config: Config{Round: time.Second, Resource: trimtab.CPU}, now: func() time.Time { return time.Unix(1e9, 0) }}
		c := &trimtab.Curve{Load: 10, Level: 0.9}
		for at := 0.0; len(c.Knots) < rapid.IntRange(1, 8).Draw(r, "knots"); {
			at += rapid.Float64Range(0.01, 2).Draw(r, "step")
			v := func() float64 { return rapid.Float64Range(0, 1).Draw(r, "performance") }
			b := trimtab.Band{Lower: v()}
			b.Mean = b.Lower + v()
			b.Upper = b.Mean + v()
			c.Knots = append(c.Knots, trimtab.Knot{Allocation: at, Band: b})
		}
		s := &state{Workload: Workload{SLO: rapid.Float64Range(0.1, 1).Draw(r, "slo")}, peaks: map[int64]float64{0: rapid.Float64Range(0, 100).Draw(r, "peak")}}
		e.newest.MaxWorkloads = 1
		e.newest.Observe(&trimtab.Estimate{Time: e.now(), Curve: c}, e.now())
		a, why := e.adviceOf(s, trimtab.CPU, 3)
		if why == "" && !(a.lower > 0 && a.lower <= a.target && a.target <= a.upper) {
			r.Errorf("%+v of %+v", a, c)
		}
	})
}
