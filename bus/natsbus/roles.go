package natsbus

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/bus"
	"github.com/trimtab/trimtab/colocation"
	"github.com/trimtab/trimtab/speculation"
	"github.com/trimtab/trimtab/topic"
)

// Role is the role of a process on the bus. A NATS server can limit it to what that role may do,
// see [PermissionsOf].
type Role string

// The roles. A process without one does the work of all of them.
const (
	Collector Role = "collector"
	Analyzer  Role = "analyzer"
	Planner   Role = "planner"
	Agent     Role = "agent"
	Console   Role = "console"
	// Observer reads all values except requests, and publishes nothing.
	Observer Role = "observer"
)

// Roles lists all of them, in the order of the flow.
func Roles() []Role { return []Role{Collector, Analyzer, Planner, Agent, Console, Observer} }

// The buckets that belong to one role.
const (
	// BucketAnalyzers and BucketCollectors hold the locks that let only one analyzer or collector
	// do a piece of work at a time.
	BucketAnalyzers  = "analyzers"
	BucketCollectors = "collectors"
	// BucketSnapshots keeps the learned state of analyzers, BucketPlanner the other state of a
	// planner.
	BucketSnapshots = "snapshots"
	BucketPlanner   = "snapshots-planner"
	// BucketJobs has the jobs of speculative tasks, BucketMachines the lists of hosts that
	// candidates refer to.
	BucketJobs     = "jobs"
	BucketMachines = "machines"
	// BucketThresholds has, by pool and host, the limits that a co-location controller found for
	// services, and its other learned state.
	BucketThresholds = "thresholds"
	bucketLeaders    = "leaders"
)

// who lists the roles that may publish and read a row of the table.
type who struct{ publish, read []Role }

// whoMay returns the publish and read columns of a row.
func whoMay(row StreamInfo) who {
	if row.Bucket {
		return map[string]who{
			bucketLeaders:    {[]Role{Planner}, []Role{Planner, Agent, Console}},
			BucketAnalyzers:  {[]Role{Analyzer}, []Role{Analyzer}},
			BucketCollectors: {[]Role{Collector}, []Role{Collector}},
			BucketSnapshots:  {[]Role{Analyzer}, []Role{Analyzer}},
			BucketPlanner:    {[]Role{Planner}, []Role{Planner}},
			BucketJobs:       {[]Role{Planner}, []Role{Planner}},
			BucketMachines:   {[]Role{Planner}, []Role{Planner}},
			BucketThresholds: {[]Role{Agent}, []Role{Agent, Console}},
		}[row.Name]
	}
	if row.Kind == "" { // UNREADABLE: every reader of a stored kind writes dead letters
		return who{[]Role{Analyzer, Planner, Agent, Console}, []Role{Console}}
	}
	return map[trimtab.Kind]who{
		trimtab.KindSpans:    {[]Role{Collector}, []Role{Analyzer}},
		trimtab.KindSketch:   {[]Role{Analyzer}, []Role{Analyzer}},
		trimtab.KindSample:   {[]Role{Collector, Agent}, []Role{Analyzer}},
		trimtab.KindAlert:    {[]Role{Collector}, []Role{Planner}},
		trimtab.KindEstimate: {[]Role{Analyzer}, []Role{Planner, Console}},
		trimtab.KindPlan:     {[]Role{Planner}, []Role{Agent, Console}},
		trimtab.KindPart:     {[]Role{Planner}, []Role{Agent}},
		trimtab.KindOutcome:  {[]Role{Agent}, []Role{Planner, Console}},
		trimtab.KindHolding:  {[]Role{Agent}, []Role{Analyzer, Planner, Console}},
		trimtab.KindCommand:  {[]Role{Console}, []Role{Planner, Agent}},

		colocation.KindContributions: {[]Role{Analyzer}, []Role{Planner, Agent, Console}},
		colocation.KindColocation:    {[]Role{Agent}, []Role{Analyzer, Console}},

		speculation.KindMachine:    {[]Role{Agent}, []Role{Planner, Console}},
		speculation.KindPlacements: {[]Role{Planner}, []Role{Agent}},
		speculation.KindCandidates: {[]Role{Planner}, []Role{Planner}},
		speculation.KindJobRequest: {[]Role{Console}, []Role{Planner}},
		speculation.KindJobState:   {[]Role{Planner}, []Role{Console}},
	}[row.Kind]
}

// Scope limits a user further than its role.
type Scope struct {
	// Pool is the pool in which an agent has knobs.
	Pool string
	// Host is the host of an agent; the subjects that it publishes contain the name.
	Host string
	// Secret is the agent's secret; see [SecretOf].
	Secret string
	// Places are the consumers of all agents, which store how far each has read a stream: only
	// their agents use them. See [ConsumerOf].
	Places []string
}

// Permissions are NATS permissions of one user. A NATS server denies every subject that is not
// allowed; a denied subject stays denied even if it is also allowed.
type Permissions struct {
	Publish, Deny, Subscribe []string
	// Answers allows one answer to each request that was received.
	Answers bool
}

// userInfo is the subject on which a server tells a user its permissions.
const userInfo = "$SYS.REQ.USER.INFO"

// Inbox returns the prefix of the subjects on which a user gets answers: no other user may read
// there.
func Inbox(r Role, host string) string {
	prefix := "_INBOX_" + string(r)
	if r == Agent {
		prefix += "_" + bus.EscapeKey(host)
	}
	return prefix
}

// keyOf returns the key of the values that an agent reads of a stored kind: its pool, or, for
// parts of plans, its host's own.
func keyOf(k trimtab.Kind, host, pool string) string {
	if k == trimtab.KindPart {
		return (&trimtab.Plan{Pool: pool, Host: host}).Key()
	}
	return pool
}

// PlacesOf are the consumers of a host's actuator; see [ConsumerOf].
func PlacesOf(host, pool, secret string) (names []string) {
	for _, k := range []trimtab.Kind{trimtab.KindPlan, trimtab.KindPart} {
		names = append(names, ConsumerOf(host, keyOf(k, host, pool), secret))
	}
	return names
}

// ConsumerOf returns the name of the consumer of a host's actuator in a stream, for a key. A
// server accepts acknowledgements from any leaf node without checking permissions, so the name
// contains the host's secret, which other agents do not know; with an empty secret they can guess
// it.
func ConsumerOf(host, key, secret string) string {
	name := bus.EscapeKey(GroupOf(host)) + "--" + bus.EscapeKey(key)
	if secret != "" {
		name += "--" + secret
	}
	return name
}

// SecretOf derives the secret of an agent from its private key, a PEM file. The secret is in the
// configuration of the NATS servers; the key cannot be computed from it.
func SecretOf(key []byte) string {
	sum := sha256.Sum256(append([]byte("trimtab place in a stream\n"), key...))
	return hex.EncodeToString(sum[:12])
}

// GroupOf is the group in which the actuator of a host subscribes.
func GroupOf(host string) string { return "actuator-" + host }

// PermissionsOf derives from the table the least permissions that a user needs.
func PermissionsOf(r Role, s Scope) Permissions {
	p := Permissions{Publish: []string{userInfo}, Subscribe: []string{Inbox(r, s.Host) + ".>"}}
	if r == Observer {
		p.Subscribe = append(p.Subscribe, "trimtab.>")
		return p
	}
	for _, row := range Table() {
		switch may := whoMay(row); {
		case row.Name == others:
		case row.Bucket:
			p.bucket(row.Name, bucketKey(r, s), slices.Contains(may.publish, r), slices.Contains(may.read, r))
		case row.Kind == "":
			p.api("STREAM.INFO", row.Name)
		default:
			p.row(row, r, s, slices.Contains(may.publish, r), slices.Contains(may.read, r))
		}
		if r == Planner && row.Name != "" && row.Name != others {
			// The planner has the most rights: it creates the streams that the other roles use.
			p.api("STREAM.CREATE", stream(row))
			p.api("STREAM.UPDATE", stream(row))
			p.api("STREAM.INFO", stream(row))
		}
	}
	switch r {
	case Planner:
		p.Publish = append(p.Publish, jetStreamAPI+"INFO")
	case Agent: // the same as a leaf node
		for _, subject := range p.Publish {
			if call, ok := strings.CutPrefix(subject, jetStreamAPI); ok {
				p.Publish = append(p.Publish, domainAPI+call)
			} else if strings.HasPrefix(subject, "$KV.") {
				p.Publish = append(p.Publish, domainAPI+subject)
			}
		}
	}
	slices.Sort(p.Publish)
	p.Publish = slices.Compact(p.Publish)
	return p
}

// stream returns the name of the stream that stores a row.
func stream(row StreamInfo) string {
	if row.Bucket {
		return "KV_" + row.Name
	}
	return row.Name
}

func (p *Permissions) api(call string, tokens ...string) {
	p.Publish = append(p.Publish, jetStreamAPI+call+"."+strings.Join(tokens, "."))
}

// bucketKey returns the key that a role may write in a bucket, "*" for any: an agent writes that
// of its own host.
func bucketKey(r Role, s Scope) string {
	if r == Agent {
		return bus.EscapeKey(ThresholdsKey(s.Pool, s.Host))
	}
	return "*"
}

// ThresholdsKey is the key of a host in [BucketThresholds].
func ThresholdsKey(pool, host string) string { return pool + "/" + host }

// bucket grants access to a bucket. A role that may write only one key may read only that key.
func (p *Permissions) bucket(name, key string, write, read bool) {
	if !write && !read {
		return
	}
	p.api("STREAM.INFO", "KV_"+name)
	what := ">"
	if write && key != "*" {
		what = key
	}
	p.api("DIRECT.GET", "KV_"+name, "$KV", name, what)
	if write {
		p.Publish = append(p.Publish, "$KV."+name+"."+key)
	}
}

// row adds the permissions for one kind.
func (p *Permissions) row(row StreamInfo, r Role, s Scope, write, read bool) {
	if row.Name != "" && (write || read) {
		p.api("STREAM.INFO", row.Name)
	}
	if write {
		p.Publish = append(p.Publish, subjectsOf(row.Kind, r, s))
	}
	switch {
	case !read:
	case row.Kind == speculation.KindPlacements: // an agent may not read the placements of other hosts
		p.Subscribe = append(p.Subscribe, bus.Subject(row.Kind, (&speculation.Placements{Pool: s.Pool, Host: s.Host}).Key()))
	case row.Name == "":
		p.Subscribe = append(p.Subscribe, row.Subjects)
		p.Answers = p.Answers || row.Delivery == topic.Answered
	default:
		p.Publish = append(p.Publish, row.Unreadable)
		p.api("DIRECT.GET", row.Name)
		if r == Agent {
			key := keyOf(row.Kind, s.Host, s.Pool)
			p.consumer(row.Name, ConsumerOf(s.Host, key, s.Secret), bus.Subject(row.Kind, key))
			return
		}
		p.consumer(row.Name, "*", ">")
		for _, c := range s.Places {
			p.Deny = append(p.Deny, "$JS.API.CONSUMER.*."+row.Name+"."+c, "$JS.API.CONSUMER.*."+row.Name+"."+c+".>",
				"$JS.API.CONSUMER.MSG.NEXT."+row.Name+"."+c, "$JS.ACK."+row.Name+"."+c+".>")
		}
	}
}

// consumer adds the permissions to create a consumer, to request messages from it and to
// acknowledge them.
func (p *Permissions) consumer(stream, name, filter string) {
	p.api("CONSUMER.CREATE", stream, name, filter)
	for _, call := range []string{"CONSUMER.INFO", "CONSUMER.DELETE", "CONSUMER.MSG.NEXT"} {
		p.api(call, stream, name)
	}
	p.Publish = append(p.Publish, "$JS.ACK."+stream+"."+name+".>")
}

// subjectsOf returns the subjects on which a role publishes a kind. An agent's host is part of
// the keys of what it publishes about itself.
func subjectsOf(k trimtab.Kind, r Role, s Scope) string {
	if r == Agent {
		switch k {
		case trimtab.KindHolding:
			return bus.Subject(k, (&trimtab.Holding{Pool: s.Pool, Host: s.Host}).Key())
		case trimtab.KindOutcome:
			return bus.Subject(k, (&trimtab.Outcome{Pool: s.Pool, Host: s.Host}).Key())
		case speculation.KindMachine:
			return bus.Subject(k, (&speculation.Machine{Pool: s.Pool, Host: s.Host}).Key())
		case colocation.KindColocation:
			return bus.Subject(k, (&colocation.Colocation{Pool: colocation.JobsPool(s.Pool), Host: s.Host}).Key())
		}
	}
	return "trimtab." + string(k) + ".*"
}

// missing lists the permissions in p that granted lacks, as "publish SUBJECT" and "subscribe
// SUBJECT".
func (p *Permissions) missing(granted *Permissions) (lacks []string) {
	for _, s := range p.Publish {
		if !anyCovers(granted.Publish, s) || anyCovers(granted.Deny, s) {
			lacks = append(lacks, "publish "+s)
		}
	}
	for _, s := range p.Subscribe {
		if !anyCovers(granted.Subscribe, s) {
			lacks = append(lacks, "subscribe "+s)
		}
	}
	if p.Answers && !granted.Answers {
		lacks = append(lacks, "answer requests (allow_responses)")
	}
	return lacks
}

func anyCovers(patterns []string, subject string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return covers(p, subject) })
}

// covers reports whether pattern matches everything that subject matches, which may have
// wildcards itself.
func covers(pattern, subject string) bool {
	p, s := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range p {
		switch {
		case token == ">":
			return len(s) > i
		case i >= len(s) || s[i] == ">":
			return false
		case token != "*" && token != s[i]:
			return false
		}
	}
	return len(p) == len(s)
}
