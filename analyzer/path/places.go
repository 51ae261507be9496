package path

import (
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

// placeID is the index of a place: a component of a workload, or one of its Servpods. nowhere
// stands for spans that belong to no workload.
type placeID uint32

const nowhere placeID = 0

// noWorkload is the workload of nowhere.
const noWorkload = -1

const (
	// maxName is the longest name that a sketch may carry, in bytes.
	maxName = 253
	// maxCached and maxCachedBytes bound the cache of resources, in entries and bytes; a
	// full cache is emptied.
	maxCached      = 8192
	maxCachedBytes = 8 << 20
)

type place struct {
	workload  int32
	component string
	// host is the host of the Servpod; "": the place is the component as a whole. base is the place
	// of the component as a whole.
	host string
	base placeID
	// serves: the component has sent a span of a request that it served.
	serves bool
	// servedUntil is until when the component counts as serving because it served before a
	// restart, in Unix ns; 0: it does not.
	servedUntil int64
	// clock is one sender of the component. New senders start with its timing.
	clock clockID
	// peers is the number of peers that it calls.
	peers uint8
	// inner estimates whether its requests are usually within another one of the same workload. It
	// is raised for each request that was counted before its caller arrived and turned out to be,
	// and lowered for each that did not.
	inner int8
}

// foresee updates inner after a request was counted while its caller was missing. inner: the caller
// turned out to be within a request of the same workload.
func (x *place) foresee(inner bool) {
	if inner {
		x.inner = min(x.inner+1, 8)
	} else {
		x.inner = max(x.inner-1, -8)
	}
}

// placeKey identifies a place.
type placeKey struct {
	workload        int32
	component, host string
}

// maxHosted is the largest number of places with a host. Spans of further Servpods count for the
// component as a whole.
const maxHosted = 4096

type workload struct {
	name      string
	threshold int64 // ns, 0: none
	// places is the number of its components.
	places int
	// versions are "component version" texts seen in its spans, sorted.
	versions  []string
	instances instances
}

// running records that a component of w runs a version. If there are too many versions, only the
// new one is kept, so that a site which numbers every start does not fill the memory. The slice
// is shared with sketches, and never changed.
func (w *workload) running(component, version string) {
	if version == "" {
		return
	}
	name := cleanName(component + " " + version)
	i, known := slices.BinarySearch(w.versions, name)
	switch {
	case known:
	case len(w.versions) >= trimtab.MaxVersions:
		w.versions = []string{name}
	default:
		w.versions = slices.Insert(slices.Clone(w.versions), i, name)
	}
}

// places maps the resource attributes of spans to workloads and components.
type places struct {
	config    *Config
	senders   *senders
	places    []place
	workloads []workload
	// seen is the last time that a frame had spans of the place, in Unix ns.
	seen    []int64
	now     int64
	swept   int64
	byPlace map[placeKey]placeID
	// byHost holds the places with a host, byPlace those without.
	byHost map[placeKey]placeID
	calls  calls
	byName map[string]int32
	cache  map[string]sender
	cached int
	// forgotten: the cache was emptied while a frame was read. From the next frame on, only one
	// sender of each component is kept.
	forgotten bool
	// The spare indexes are free, since sweep removed their entries.
	sparePlaces    []placeID
	spareWorkloads []int32
	// instanceBytes is the memory, in bytes, that the instances of all workloads take.
	instanceBytes int
	// The refused counters count resources beyond the limit of workloads, components, instances,
	// hosts or peers.
	refusedWorkloads, refusedComponents, refusedInstances, refusedHosts, refusedPeers uint64
	// served has the components that served requests before a restart. It is valid until
	// servedUntil, in Unix ns; 0: no span has arrived yet.
	served      map[serving]bool
	servedUntil int64
	// process is a suffix for the process of the current resource, if processes of a component are
	// distinguished; else "".
	process string
}

func newPlaces(c *Config, s *senders) *places {
	p := &places{
		config:  c,
		senders: s,
		places:  []place{{workload: noWorkload}},
		seen:    []int64{0},
		byPlace: map[placeKey]placeID{},
		byHost:  map[placeKey]placeID{},
		calls:   calls{byName: map[placeKey]placeID{}, byPair: map[[2]placeID]uint32{}},
		byName:  map[string]int32{},
		cache:   map[string]sender{},
	}
	for _, m := range c.Workloads {
		p.addWorkload(m.Name, int64(m.Threshold))
	}
	return p
}

// addWorkload returns the number of a new workload.
func (p *places) addWorkload(name string, threshold int64) int32 {
	i := int32(len(p.workloads))
	if n := len(p.spareWorkloads); n > 0 {
		i, p.spareWorkloads = p.spareWorkloads[n-1], p.spareWorkloads[:n-1]
	} else {
		p.workloads = append(p.workloads, workload{})
	}
	p.workloads[i] = workload{name: name, threshold: threshold}
	p.byName[name] = i
	return i
}

// of returns the sender of a packed resource that arrived at p.now.
func (p *places) of(packed []byte) sender {
	s, ok := p.cache[string(packed)]
	if !ok {
		refused := p.refused()
		s = p.followed(p.resolve(codec.UnpackResource(packed)))
		if p.refused() == refused { // else there may be space later
			p.remember(packed, s)
		}
	}
	p.seen[s.place], p.seen[p.places[s.place].base] = p.now, p.now
	if s.instance != unnamed {
		p.workloads[p.places[s.place].workload].instances.known[s.instance].seen = p.now
	}
	s.serves = p.places[p.places[s.place].base].serves
	return s
}

// serves reports whether the component of a place has sent a span of a request that it served,
// now or before a restart.
func (p *places) serves(id placeID) bool {
	x := &p.places[p.places[id].base]
	return x.serves || p.now < x.servedUntil
}

// serve records that the component of a place sent a span of a request that it served.
func (p *places) serve(id placeID) {
	if id != nowhere {
		p.places[p.places[id].base].serves = true
	}
}

// sameHost reports whether two places are known to be on one host, and so have one clock.
func (p *places) sameHost(a, b placeID) bool {
	host := p.places[a].host
	return host != "" && host != "localhost" && host == p.places[b].host
}

func (p *places) refused() uint64 {
	return p.refusedWorkloads + p.refusedComponents + p.refusedInstances + p.refusedHosts
}

func (p *places) remember(packed []byte, s sender) {
	if len(packed) > maxCachedBytes/64 {
		return
	}
	if len(p.cache) >= maxCached || p.cached+len(packed) > maxCachedBytes {
		p.forgetResources()
	}
	p.cache[string(packed)] = s
	p.cached += len(packed)
}

// forgetResources empties the cache. The sender numbers in the current frame stay valid until its
// end.
func (p *places) forgetResources() {
	clear(p.cache)
	p.cached, p.forgotten = 0, true
}

// begin prepares for a frame that arrived at the time now.
func (p *places) begin(now int64) {
	if p.now = now; !p.forgotten {
		return
	}
	p.forgetResources()
	p.forgotten = false
	kept := p.senders.clocks[:1:1]
	for i := range p.places {
		if x := &p.places[i]; x.clock != noClock {
			kept = append(kept, p.senders.clocks[x.clock])
			x.clock = clockID(len(kept) - 1)
		}
	}
	p.senders.clocks = kept
}

// followed returns s with the number of the clock that tracks its times.
func (p *places) followed(s sender) sender {
	if s.place == nowhere || p.config.Lateness == 0 {
		return s
	}
	x := &p.places[p.places[s.place].base]
	if x.clock == noClock || len(p.senders.clocks) <= maxCached {
		x.clock = p.senders.follow(x.workload, x.clock)
	}
	s.clock = x.clock
	return s
}

func (p *places) resolve(attrs []trimtab.Attr) sender {
	service, _ := attribute(attrs, "service.name")
	service = cleanName(service)
	p.process = p.config.processOf(attrs)
	for i := range p.config.Workloads {
		if p.config.Workloads[i].fits(attrs) {
			version, _ := attribute(attrs, "service.version")
			p.workloads[i].running(service, version)
			place := p.hosted(p.component(int32(i), service), attrs)
			return sender{place: place, instance: p.instance(i, attrs)}
		}
	}
	if _, own := attribute(attrs, trimtab.OwnAttribute); own || !p.config.Discover || service == "" {
		return sender{}
	}
	i, ok := p.byName[service]
	if !ok && len(p.byName) >= p.config.MaxWorkloads {
		p.sweep()
	}
	switch {
	case ok && int(i) < len(p.config.Workloads):
		return sender{} // it has the name of a configured workload that it does not match
	case !ok && len(p.byName) >= p.config.MaxWorkloads:
		p.refusedWorkloads++
		return sender{}
	case !ok:
		i = p.addWorkload(service, 0)
	}
	return sender{place: p.hosted(p.component(i, service), attrs)}
}

func (p *places) component(workload int32, service string) placeID {
	if service == "" {
		service = "unknown"
	}
	key := placeKey{workload: workload, component: service + p.process}
	if id, ok := p.byPlace[key]; ok {
		p.seen[id] = p.now // otherwise the sweep for a new instance could remove it
		return id
	}
	p.workloads[workload].places++ // so that the sweep below keeps the workload
	if len(p.byPlace) >= p.config.MaxComponents {
		p.sweep()
	}
	if len(p.byPlace) >= p.config.MaxComponents {
		p.refusedComponents++
		key.component = Other
		if id, ok := p.byPlace[key]; ok {
			p.workloads[workload].places--
			return id
		}
	}
	id := p.allocate()
	p.places[id] = place{workload: key.workload, component: key.component, base: id, servedUntil: p.servedBefore(key.workload, key.component)}
	p.byPlace[key] = id
	return id
}

// allocate returns a free index for a place, marked as seen now.
func (p *places) allocate() placeID {
	id := placeID(len(p.places))
	if n := len(p.sparePlaces); n > 0 {
		id, p.sparePlaces = p.sparePlaces[n-1], p.sparePlaces[:n-1]
	} else {
		p.places = append(p.places, place{})
		p.seen = append(p.seen, 0)
	}
	p.seen[id] = p.now
	return id
}

// hosted returns the Servpod of a component on the host that the attributes name, or base
// if they name none or there are too many.
func (p *places) hosted(base placeID, attrs []trimtab.Attr) placeID {
	key := placeKey{p.places[base].workload, p.places[base].component, hostOf(attrs)}
	if key.host == "" || key.component == Other {
		return base
	}
	if id, ok := p.byHost[key]; ok {
		p.seen[id] = p.now
		return id
	}
	if len(p.byHost) >= max(maxHosted, p.config.MaxComponents) {
		p.sweep()
	}
	if len(p.byHost) >= max(maxHosted, p.config.MaxComponents) {
		p.refusedHosts++
		return base
	}
	id := p.allocate()
	p.places[id] = place{workload: key.workload, component: key.component, host: key.host, base: base}
	p.byHost[key] = id
	return id
}

// idle returns how long a place must not have been seen before it is dropped, in ns: by then no
// span in memory and no open interval refers to it.
func (p *places) idle() int64 {
	c := p.config
	return int64(max(10*time.Minute, 2*(c.Timeout+c.Grace+c.Every+c.Skew)))
}

// sweep drops places and instances that were not seen for long, and discovered workloads without
// any. Names that are no longer sent must not keep out new ones. It runs at most once a minute.
func (p *places) sweep() {
	if p.now-p.swept < int64(time.Minute) {
		return
	}
	p.swept = p.now
	p.sweepCalls()
	for id := placeID(1); int(id) < len(p.places); id++ {
		x := p.places[id]
		key := placeKey{x.workload, x.component, x.host}
		known := p.byPlace
		switch {
		case x.workload == noWorkload:
			known = p.calls.byName
		case x.host != "":
			known = p.byHost
		}
		if p.now-p.seen[id] <= p.idle() || known[key] != id {
			continue
		}
		delete(known, key)
		p.places[id].clock = noClock
		p.sparePlaces = append(p.sparePlaces, id)
		if x.host != "" || x.workload == noWorkload {
			continue
		}
		w := &p.workloads[key.workload]
		if w.places--; w.places == 0 && int(key.workload) >= len(p.config.Workloads) {
			delete(p.byName, w.name)
			p.spareWorkloads = append(p.spareWorkloads, key.workload)
		}
	}
	for i := range p.config.Workloads {
		p.instanceBytes -= p.workloads[i].instances.forget(p.now - p.idle())
	}
	p.forgetResources()
}

// cleanName makes s a valid name for a sketch: valid UTF-8 of at most maxName bytes.
func cleanName(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxName)], "?")
}
