package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// Cron is a trigger of KEDA by the clock.
type Cron struct {
	start, end cron.Schedule
	location   *time.Location
}

// Within reports whether a time is in its hours: from start, the end comes first.
func (c *Cron) Within(at time.Time) bool {
	at = at.In(c.location)
	return !c.start.Next(at).Before(c.end.Next(at))
}

// scaledObject reads that of KEDA, by the rules of its admission webhook (2.21).
func (x item) scaledObject(a *Autoscaler) {
	spec := x.get("spec")
	a.Min = 0
	least, triggers := spec.get("minReplicaCount"), spec.get("triggers")
	least.whole(&a.Min, 0, 10_000)
	spec.get("maxReplicaCount").whole(&a.Max, max(a.Min, 1), 10_000)
	if a.Min > a.Max {
		least.fail(fmt.Sprintf("minReplicaCount %d is more than maxReplicaCount, %d where it is left out", a.Min, a.Max), "write maxReplicaCount too")
	}
	if idle := spec.get("idleReplicaCount"); idle.has() {
		a.Idle = new(int)
		idle.whole(a.Idle, 0, 10_000)
		if *a.Idle >= a.Min {
			idle.fail(fmt.Sprintf("idleReplicaCount %d is not less than minReplicaCount %d", *a.Idle, a.Min), "leave it out, or raise minReplicaCount")
		}
	}
	a.Cooldown = spec.get("cooldownPeriod").seconds(0)
	if d := spec.get("pollingInterval").seconds(1); d != nil {
		a.Polling = *d
	}
	advanced := spec.get("advanced")
	a.Behavior = advanced.get("horizontalPodAutoscalerConfig", "behavior").behavior()
	if f := advanced.get("scalingModifiers", "formula"); f.has() {
		f.fail("formulas of scalingModifiers are not read", "leave the formula out, and write one trigger")
	}
	for _, key := range []string{"paused", "paused-replicas"} {
		if p := x.get("metadata", "annotations", "autoscaling.keda.sh/"+key); p.has() {
			a.Notes = append(a.Notes, "its annotation "+key+" stops it in the cluster: it is played as if it were not paused")
		}
	}
	others := false
	for _, t := range triggers.items() {
		t.trigger(a)
		others = others || !slices.Contains([]string{"cpu", "memory"}, t.get("type").text())
	}
	wakes := slices.ContainsFunc(a.Metrics, func(m Metric) bool { return !m.CPU })
	switch {
	case a.Min == 0 && !others && len(triggers.items()) > 0:
		at := least
		if !at.has() {
			at = triggers
		}
		at.fail("minReplicaCount is 0 (as where it is left out), and there are triggers on cpu and memory alone", "write minReplicaCount: 1: KEDA refuses it, since without pods there is no usage that would bring one back")
	case !wakes && (a.Min == 0 || a.Idle != nil) && len(a.Metrics) > 0:
		a.Min, a.Idle = max(a.Min, 1), nil
		a.Notes = append(a.Notes, "it is played as if it were always awake: the triggers that would wake it are left out")
	case len(a.Metrics) == 0 && len(x.m.errs) == 0:
		triggers.fail("no trigger of "+a.String()+" can be replayed", "write a trigger on CPU, or one with a threshold on requests per second, as prometheus has it")
	}
}

// trigger reads one: CPU, the clock, or one with a threshold.
func (x item) trigger(a *Autoscaler) {
	kind, at := x.get("type").word(), x.get("metadata")
	asked := x.get("metricType")
	for _, e := range x.m.entries(at.node, 0) {
		at.get(keyText(e.Key)).word() // all of them are texts
	}
	switch kind {
	case "":
		x.get("type").fail("a trigger has no type", "write type: prometheus, or cpu")
		return
	case "memory":
		a.Notes = append(a.Notes, "its trigger memory is left out: a recording has nothing for it")
		return
	case "cpu":
		x.cpuTrigger(a)
		return
	case "cron":
		x.cronTrigger(a)
		return
	}
	m := Metric{Type: "AverageValue", External: true}
	switch asked.text() {
	case "", "AverageValue":
	case "Value":
		m.Type = "Value"
	default:
		asked.fail(fmt.Sprintf("metricType %q of a trigger %s", clip(asked.text()), clip(kind)), "write AverageValue or Value")
		return
	}
	for _, key := range []string{"threshold", "targetValue", "targetQueryValue", "value"} {
		t := at.get(key)
		if !t.has() {
			continue
		}
		m.Value, _ = t.positive()
		if more := at.get("activation" + strings.ToUpper(key[:1]) + key[1:]); more.has() {
			m.Activation, _ = more.quantity()
		}
		a.Metrics = append(a.Metrics, m)
		a.Notes = append(a.Notes, fmt.Sprintf("its trigger %s is taken for the load in requests per second", clip(kind)))
		return
	}
	a.Notes = append(a.Notes, fmt.Sprintf("its trigger %s is left out: it has no threshold that requests per second could be held against", clip(kind)))
}

// cpuTrigger reads a trigger on CPU. Up to KEDA 2.17 the metadata could contain the type of
// its value.
func (x item) cpuTrigger(a *Autoscaler) {
	asked, value := x.get("metricType"), x.get("metadata", "value")
	if old := x.get("metadata", "type"); old.has() {
		a.Notes = append(a.Notes, "metadata.type of its trigger cpu is read as KEDA does up to 2.17; 2.18 refuses it: write metricType beside metadata")
		if asked.has() {
			old.fail("a trigger cpu has both metricType and metadata.type", "keep metricType: KEDA refuses both")
			return
		}
		asked = old
	}
	m := Metric{CPU: true, Type: asked.text()}
	switch m.Type {
	case "Utilization":
		percent := 0
		if !value.has() {
			value.fail("the trigger cpu has no value", "write metadata: {value: \"60\"}")
		}
		value.digits(&percent, 1, 1<<31-1)
		m.Value = float64(percent)
	case "AverageValue":
		m.Value, _ = value.positive()
	default:
		asked.fail(fmt.Sprintf("metricType %q of a trigger cpu", clip(m.Type)), "write metricType: Utilization, in percent of requests, or AverageValue, in cores")
		return
	}
	a.Metrics = append(a.Metrics, m)
}

// cronTrigger reads a trigger by the clock.
func (x item) cronTrigger(a *Autoscaler) {
	at := x.get("metadata")
	c, pods := &Cron{}, 0
	for _, s := range []struct {
		key string
		to  *cron.Schedule
	}{{"start", &c.start}, {"end", &c.end}} {
		text := at.get(s.key)
		var err error
		if *s.to, err = cronOf(text.text()); err != nil {
			text.fail(fmt.Sprintf("%s of a trigger cron: %s", s.key, clip(err.Error())), "write minute, hour, day of month, month and day of week, as in 0 8 * * 1-5")
			return
		}
	}
	zone := at.get("timezone")
	location, err := time.LoadLocation(zone.text())
	if err != nil || zone.text() == "" {
		zone.fail(fmt.Sprintf("timezone %q of a trigger cron is not known here", clip(zone.text())), "write one such as Europe/Berlin; a system without them lacks the package tzdata")
		return
	}
	c.location = location
	if n := at.get("desiredReplicas"); n.has() {
		n.digits(&pods, 1, 1<<31-1)
	} else {
		n.fail("a trigger cron has no desiredReplicas", "write how many pods it asks for in its hours")
	}
	a.Metrics = append(a.Metrics, Metric{Type: "AverageValue", External: true, Value: float64(pods), Cron: c})
	a.Notes = append(a.Notes, "its trigger cron goes by the times of the recording; a file of loads without times begins at 0:00 UTC on a Thursday")
}

// cronOf reads a schedule as KEDA does. The library panics at some that are none.
func cronOf(text string) (s cron.Schedule, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%q is no schedule", clip(text))
		}
	}()
	if len(text) > 200 || strings.Contains(text, "TZ=") {
		return nil, fmt.Errorf("%q is no schedule", clip(text))
	}
	return cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow).Parse(text)
}
