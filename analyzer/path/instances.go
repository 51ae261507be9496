package path

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trimtab/trimtab"
)

// instanceID numbers an instance of a workload, among those of the workload.
// unnamed is that of spans whose resource names none, or one beyond the bounds.
type instanceID uint16

const unnamed instanceID = 0

const (
	// maxInstanceBytes bounds the names of the instances of one workload, so that
	// its sketch fits a message; maxAllInstanceBytes, those of all workloads.
	maxInstanceBytes, maxAllInstanceBytes = 128 << 10, 16 << 20
	// instanceBytes is what an instance costs beside its names.
	instanceBytes = 64
)

// sender is what a resource stands for.
type sender struct {
	place    placeID
	instance instanceID
	// serves: its component is known to serve requests. It is not kept up to date.
	serves bool
	clock  clockID
}

// instance is one that spans named.
type instance struct {
	host  string
	names []string // shared with sketches, and never changed
	key   string
	// seen is when it was last in a frame, Unix ns.
	seen int64
}

func (x *instance) size() int { return 2*len(x.key) + instanceBytes }

// instances are those of one workload that spans named. The zero value is empty.
type instances struct {
	byKey map[string]instanceID
	known []instance // by number; the first is not used
	spare []instanceID
	// bytes is what they cost.
	bytes int
}

// hostOf returns the host that a resource names, "" if none: the node of a pod,
// whose host.name is its own.
func hostOf(attrs []trimtab.Attr) string {
	for _, key := range []string{"k8s.node.name", "host.name", "hostname"} {
		if v, ok := attribute(attrs, key); ok && fit(v) {
			return v
		}
	}
	return ""
}

// namesOf returns what a resource calls the copy of the service that it is of.
// Which of these an agent calls it by, only the analyzer can tell.
func namesOf(attrs []trimtab.Attr) (names []string) {
	for _, key := range []string{"service.instance.id", "k8s.pod.name", "container.id"} {
		if v, ok := attribute(attrs, key); ok && fit(v) && !slices.Contains(names, v) {
			names = append(names, v)
		}
	}
	return names
}

// fit reports whether an agent could call an instance or its host so. A name that
// was cut would be that of another.
func fit(name string) bool { return name != "" && len(name) <= maxName && utf8.ValidString(name) }

// instance returns the number of the instance of a configured workload that attrs
// name. Of discovered ones nothing is divided among instances.
func (p *places) instance(workload int, attrs []trimtab.Attr) instanceID {
	x := instance{host: hostOf(attrs), names: namesOf(attrs), seen: p.now}
	if x.host == "" && len(x.names) == 0 {
		return unnamed
	}
	x.key = strings.Join(append([]string{x.host}, x.names...), "\x00")
	of := &p.workloads[workload].instances
	if id, ok := of.byKey[x.key]; ok {
		of.known[id].seen = p.now
		return id
	}
	if !p.room(of, &x) {
		if p.sweep(); !p.room(of, &x) {
			p.refusedInstances++
			return unnamed
		}
	}
	p.instanceBytes += x.size()
	return of.add(x)
}

// room reports whether one more may be kept.
func (p *places) room(of *instances, x *instance) bool {
	return len(of.byKey) < trimtab.MaxShares && of.bytes+x.size() <= maxInstanceBytes && p.instanceBytes+x.size() <= maxAllInstanceBytes
}

func (of *instances) add(x instance) instanceID {
	if of.byKey == nil {
		of.byKey, of.known = map[string]instanceID{}, make([]instance, 1)
	}
	id := instanceID(len(of.known))
	if n := len(of.spare); n > 0 {
		id, of.spare = of.spare[n-1], of.spare[:n-1]
	} else {
		of.known = append(of.known, instance{})
	}
	of.known[id] = x
	of.byKey[x.key] = id
	of.bytes += x.size()
	return id
}

// forget lets go of those that were not seen since a time, and returns their cost.
func (of *instances) forget(since int64) (bytes int) {
	for id := 1; id < len(of.known); id++ {
		x := &of.known[id]
		if x.key == "" || x.seen >= since {
			continue
		}
		bytes += x.size()
		delete(of.byKey, x.key)
		of.spare = append(of.spare, instanceID(id))
		*x = instance{}
	}
	of.bytes -= bytes
	return bytes
}

// compare orders instances by name, whatever their numbers.
func (of *instances) compare(a, b instanceID) int {
	if a == b || a == unnamed || b == unnamed {
		return int(a) - int(b)
	}
	return strings.Compare(of.known[a].key, of.known[b].key)
}

// loads returns the requests of instances by number as a sketch tells them.
func (of *instances) loads(requests []float64) (out []trimtab.InstanceLoad) {
	for id, n := range requests {
		if n > 0 {
			x := &of.known[id]
			out = append(out, trimtab.InstanceLoad{Host: x.host, Names: x.names, Requests: n})
		}
	}
	slices.SortFunc(out, trimtab.InstanceLoad.Compare)
	return out
}
