package view

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
)

// Patch returns the newest recommendation for a workload as commands that a person
// can run. ok is false for a workload that is not known; advised is false while
// there is no recommendation.
func (v *Model) Patch(workload string) (p Patch, advised, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := v.workloads.all[workload]
	if s == nil {
		return p, false, false
	}
	p = Patch{Workload: workload, Amounts: map[string]trimtab.Amount{}, Left: map[string]string{}}
	n := len(s.decisions)
	if n == 0 {
		return p, false, true
	}
	for resource, d := range s.newestOn {
		p.Amounts[resource] = d.Action.Set
		if len(d.Moves) > 0 {
			p.Amounts[resource] = d.most()
			p.Instances = max(p.Instances, len(d.Moves))
		}
	}
	p.Plan, p.Time = s.decisions[n-1].Plan, s.decisions[n-1].Time
	if d := s.main(v.config.Resource, time.Now()); d.instances > 0 {
		if p.Unit = d.knob.Unit; strings.HasSuffix(p.Unit, ".scope") {
			p.Unit = "" // its process made it, and no file describes it
		}
		if at := strings.IndexByte(p.Unit, '@'); at >= 0 && d.several() {
			p.Unit = p.Unit[:at+1] + p.Unit[strings.LastIndexByte(p.Unit, '.'):]
		}
	}
	p.write()
	return p, true, true
}

// most is the most that the decision gives an instance: one that got less would
// be the slowest.
func (d *Decision) most() (out trimtab.Amount) {
	for i := range d.Moves {
		if m := &d.Moves[i]; out.Less(m.Set) {
			out = m.Set
		}
	}
	return out
}

// whom says to which object the amounts apply.
func (p *Patch) whom() string {
	if p.Instances > 0 {
		return ", for each of its instances"
	}
	return ""
}

// write puts the amounts into words of systemd and Kubernetes. Both round up, so that no workload
// gets less than was advised because of a unit.
func (p *Patch) write() {
	var lines []string
	limits := map[string]string{}
	for _, resource := range sortedKeys(p.Amounts) {
		a := p.Amounts[resource]
		switch resource {
		case trimtab.CPU:
			lines = append(lines, "CPUQuota="+percentOrNone(a))
			if !a.Unlimited {
				limits["cpu"] = fmt.Sprintf("%dm", ceil(1000*a.Value))
			}
		case trimtab.Memory:
			lines = append(lines, "MemoryMax="+bytesOrInfinity(a))
			if !a.Unlimited {
				limits["memory"] = strconv.FormatInt(ceil(a.Value), 10)
			}
		default:
			p.Left[resource] = "neither systemd nor a Deployment's resources have a word for it; set it where " + oneLine(resource) + " is set"
		}
		if a.Unlimited && (resource == trimtab.CPU || resource == trimtab.Memory) {
			p.Left[resource] = "unlimited: the drop-in lifts the limit; take it out of the Deployment by hand"
		}
	}
	if len(lines) > 0 {
		p.Systemd = p.dropIn(lines)
	}
	if len(limits) > 0 {
		p.Deployment = p.deployment(limits)
	}
}

// ceil rounds up to at least 1, and ignores rounding errors.
func ceil(v float64) int64 {
	return int64(max(1, min(math.Ceil(v-1e-6), math.MaxInt64/2)))
}

func percentOrNone(a trimtab.Amount) string {
	if a.Unlimited {
		return ""
	}
	return fmt.Sprintf("%d%%", ceil(100*a.Value))
}

func bytesOrInfinity(a trimtab.Amount) string {
	if a.Unlimited {
		return "infinity"
	}
	return strconv.FormatInt(ceil(a.Value), 10)
}

// dropIn is a file below UNIT.d.
func (p *Patch) dropIn(lines []string) string {
	unit, section := p.Unit, "Service"
	if unit == "" {
		unit = "UNIT.service"
	}
	if strings.HasSuffix(unit, ".slice") {
		section = "Slice"
	}
	return fmt.Sprintf("# What trimtab advises for %s: plan %s of %s%s.\n# Save it as /etc/systemd/system/%s.d/50-trimtab.conf, then: systemctl daemon-reload\n[%s]\n%s\n",
		oneLine(p.Workload), p.Plan, p.Time.UTC().Format(time.RFC3339), p.whom(), oneLine(unit), section, strings.Join(lines, "\n"))
}

// deployment is a strategic merge patch.
func (p *Patch) deployment(limits map[string]string) string {
	var b strings.Builder
	whom := p.whom() + "."
	if p.Instances == 0 {
		whom = ", for all replicas together:\n# divide by their number."
	}
	fmt.Fprintf(&b, "# What trimtab advises for %s: plan %s of %s%s\n# kubectl patch deployment NAME --patch-file FILE\n",
		oneLine(p.Workload), p.Plan, p.Time.UTC().Format(time.RFC3339), whom)
	fmt.Fprintf(&b, "spec:\n  template:\n    spec:\n      containers:\n        - name: %s  # the container's name\n          resources:\n", quoted(p.Workload))
	for _, part := range []string{"requests", "limits"} {
		fmt.Fprintf(&b, "            %s:\n", part)
		for _, resource := range sortedKeys(limits) {
			fmt.Fprintf(&b, "              %s: %s\n", resource, quoted(limits[resource]))
		}
	}
	return b.String()
}

// oneLine is a name inside a comment: printable, on its line, and short.
func oneLine(s string) string {
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	q := strconv.QuoteToASCII(s)
	if bare := q[1 : len(q)-1]; bare == s && !strings.ContainsAny(s, `\"`) {
		return s
	}
	return q
}

// quoted is a string in YAML: JSON's form is one.
func quoted(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	// A string cannot fail to print.
	_ = e.Encode(s)
	return strings.TrimSpace(b.String())
}
