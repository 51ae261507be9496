package path

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codes"
)

// instanceID numbers an instance within its workload. unnamed stands for spans whose resource
// names no instance, or one beyond the bounds.
type instanceID uint16

const unnamed instanceID = 0

const (
	// maxInstanceBytes is the largest total length of the names of the instances of one workload,
	// so that its sketch fits into a message; maxAllInstanceBytes is that for all workloads.
	maxInstanceBytes, maxAllInstanceBytes = 128 << 10, 16 << 20
	// instanceBytes is the memory that an instance takes in addition to its names.
	instanceBytes = 64
	// maxClasses bounds the classes of refused requests.
	maxClasses = 17
)

// sender is the place and instance that a resource belongs to.
type sender struct {
	place    placeID
	instance instanceID
	// serves: its component is known to serve requests. It may be out of date.
	serves bool
	clock  clockID
}

// instance is an instance of a workload that spans have named.
type instance struct {
	host  string
	names []string // shared with sketches, and never changed
	key   string
	// refused is the class of the requests, "" for an instance: requests that a gate refused are
	// counted like those of an instance.
	refused string
	// seen is when it was last in a frame, Unix ns.
	seen int64
}

func (x *instance) size() int { return 2*len(x.key) + instanceBytes }

// instances are those of one workload that spans have named. The zero value is empty.
type instances struct {
	byKey map[string]instanceID
	known []instance // by number; the first is not used
	spare []instanceID
	// bytes is the memory that they take; classes is how many stand for a class of refused
	// requests.
	bytes, classes int
}

// hostOf returns the host that a resource names, "" if none: first the node of a pod, since the
// pod's own host.name is not the node's.
func hostOf(attrs []trimtab.Attr) string {
	for _, key := range []string{"k8s.node.name", "host.name", "hostname"} {
		if v, ok := attribute(attrs, key); ok && fit(v) {
			return v
		}
	}
	return ""
}

// namesOf returns the names that a resource gives its instance. Only the analyzer knows which of
// them the agent uses.
func namesOf(attrs []trimtab.Attr) (names []string) {
	for _, key := range []string{"service.instance.id", "k8s.pod.name", "container.id"} {
		if v, ok := attribute(attrs, key); ok && fit(v) && !slices.Contains(names, v) {
			names = append(names, v)
		}
	}
	return names
}

// fit reports whether an agent may use the name for an instance or a host. Longer names are not
// cut, since the result could be the name of another one.
func fit(name string) bool { return name != "" && len(name) <= maxName && utf8.ValidString(name) }

// instance returns the number of the instance of a configured workload that attrs name. The load
// of discovered workloads is not counted by instance.
func (p *places) instance(workload int, attrs []trimtab.Attr) instanceID {
	x := instance{host: hostOf(attrs), names: namesOf(attrs), seen: p.now}
	of := &p.workloads[workload].instances
	switch class, refused := attribute(attrs, codes.RefusedAttribute); {
	case refused:
		x = of.refusal(class, p.now)
	case x.host == "" && len(x.names) == 0:
		return unnamed
	default:
		x.key = strings.Join(append([]string{x.host}, x.names...), "\x00")
	}
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

// room reports whether one more instance fits within the bounds.
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
	if x.refused != "" {
		of.classes++
	}
	of.byKey[x.key] = id
	of.bytes += x.size()
	return id
}

// forget drops the instances that were not seen since a time, and returns the bytes freed.
func (of *instances) forget(since int64) (bytes int) {
	for id := 1; id < len(of.known); id++ {
		x := &of.known[id]
		if x.key == "" || x.seen >= since {
			continue
		}
		bytes += x.size()
		delete(of.byKey, x.key)
		of.spare = append(of.spare, instanceID(id))
		if x.refused != "" {
			of.classes--
		}
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

// loads returns the requests of each instance in the form that sketches use.
func (of *instances) loads(requests []float64) (out []trimtab.InstanceLoad) {
	for id, n := range requests {
		if n == 0 || of.refuses(instanceID(id)) {
			continue
		}
		x := &of.known[id]
		out = append(out, trimtab.InstanceLoad{Host: x.host, Names: x.names, Requests: n})
	}
	slices.SortFunc(out, trimtab.InstanceLoad.Compare)
	return out
}

// refusal stands for the refused requests of a class. Classes beyond the limit count together.
func (of *instances) refusal(class string, now int64) instance {
	key := func(class string) string { return "\x00refused\x00" + class }
	class = cleanName(class)
	if _, known := of.byKey[key(class)]; class == "" || !known && of.classes >= maxClasses-1 {
		class = Other
	}
	return instance{refused: class, key: key(class), seen: now}
}

// refuses reports whether id stands for requests that a gate refused.
func (of *instances) refuses(id instanceID) bool { return id != unnamed && of.known[id].refused != "" }

// refused returns the refused requests by class, nil if there are none.
func (of *instances) refused(requests []float64) (out map[string]float64) {
	for id, n := range requests {
		if n > 0 && of.refuses(instanceID(id)) {
			if out == nil {
				out = map[string]float64{}
			}
			out[of.known[id].refused] += n
		}
	}
	return out
}
