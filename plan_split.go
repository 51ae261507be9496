package trimtab

import "slices"

// Split returns what travels of a plan: where Hosts has several, its head, which
// has everything but the actions, and then a part for each host, which has its
// actions and nothing about others; else the plan itself. A host without actions
// gets a part too: it renews the lease.
//
// The plan of 10,000 workloads is 10 MB with its reasons. A thousand hosts would
// each read all of it.
func (p *Plan) Split() []*Plan {
	if len(p.Hosts) < 2 {
		return []*Plan{p}
	}
	of := make(map[string][]Action, len(p.Hosts))
	for i := range p.Actions {
		of[p.Actions[i].Host] = append(of[p.Actions[i].Host], p.Actions[i])
	}
	within := make(map[string][]Enveloped, len(p.Hosts))
	for i := range p.Envelopes {
		within[p.Envelopes[i].Host] = append(within[p.Envelopes[i].Host], p.Envelopes[i])
	}
	hosts := slices.Clone(p.Hosts)
	for host := range of {
		if !slices.Contains(p.Hosts, host) {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	head := *p
	head.Hosts, head.Actions, head.Envelopes, head.Parts = nil, nil, nil, len(hosts)
	out := []*Plan{&head}
	for _, host := range hosts {
		part := *p
		part.Hosts, part.Host, part.Actions = nil, host, of[host]
		part.Held, part.Unmoved, part.Verdicts, part.Audit = nil, nil, nil, nil
		part.Lendable, part.Envelopes = lendableOf(p, host), within[host]
		out = append(out, &part)
	}
	return out
}

// lendableOf is what a plan says of one host alone.
func lendableOf(p *Plan, host string) map[string]float64 {
	if v, ok := p.Lendable[host]; ok {
		return map[string]float64{host: v}
	}
	return nil
}

// Joiner puts plans together again that were split, whatever the order in which
// their parts come, and however often. Its zero value is ready.
type Joiner struct {
	open []*joining // in the order in which they began
	// done are the latest that were handed out: what comes again of them is no news.
	done []planStep
}

// planStep names one step of one plan.
type planStep struct {
	pool            string
	epoch, sequence uint64
	step            int
}

// joining is one plan of which something came.
type joining struct {
	Plan
	name   planStep
	headed bool
	has    map[string]bool // the hosts whose parts came
}

// maxJoining bounds the plans that are under way. A planner sends one after the
// other: of an older one nothing more comes, since its sender ended.
const maxJoining = 4

// Take returns the plans that are whole with p, and those that are given up for
// it, without what is missing.
func (j *Joiner) Take(p *Plan) (done []*Plan) {
	if p.Host == "" && p.Parts == 0 {
		return []*Plan{p}
	}
	name := planStep{p.Pool, p.Epoch, p.Sequence, p.Step}
	if slices.Contains(j.done, name) {
		return nil
	}
	i := slices.IndexFunc(j.open, func(o *joining) bool { return o.name == name })
	if i < 0 {
		if len(j.open) == maxJoining {
			done = j.drop(0)
		}
		i = len(j.open)
		j.open = append(j.open, &joining{name: name, has: map[string]bool{}})
	}
	o := j.open[i]
	switch {
	case p.Host == "":
		actions, envelopes := o.Actions, o.Envelopes
		o.Plan, o.headed = *p, true
		o.Actions, o.Envelopes = actions, envelopes
	case !o.has[p.Host]:
		o.has[p.Host] = true
		o.Actions = append(o.Actions, p.Actions...)
		o.Envelopes = append(o.Envelopes, p.Envelopes...)
	}
	if o.headed && len(o.has) >= o.Parts {
		done = append(done, j.drop(i)...)
	}
	return done
}

// drop ends one plan, and returns it where its head came.
func (j *Joiner) drop(i int) []*Plan {
	o := j.open[i]
	j.open = slices.Delete(j.open, i, i+1)
	if j.done = append(j.done, o.name); len(j.done) > maxJoining {
		j.done = slices.Delete(j.done, 0, 1)
	}
	if !o.headed {
		return nil
	}
	o.Plan.Parts = 0
	return []*Plan{&o.Plan}
}
