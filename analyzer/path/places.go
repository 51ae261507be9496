package path

import (
	"slices"
	"strings"
	"time"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/codec"
)

// placeID numbers a component of a workload. nowhere is that of spans which
// belong to no workload.
type placeID uint32

const nowhere placeID = 0

// noWorkload is the workload of nowhere.
const noWorkload = -1

const (
	// maxName is the longest name that a sketch may carry, in bytes.
	maxName = 253
	// maxCached and maxCachedBytes bound the cache of resources; when it is
	// full it is emptied.
	maxCached      = 8192
	maxCachedBytes = 8 << 20
)

type place struct {
	workload  int32
	component string
}

type workload struct {
	name      string
	threshold int64 // ns, 0: none
	// places is how many components it has.
	places int
	// versions are those that its components came with, sorted.
	versions  []string
	instances instances
}

// running notes that a component of w runs a version. When there are too many
// only the new one is kept, so that a site which numbers every start does not
// fill the memory. The slice is shared with sketches, and never changed.
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

// places knows which workload and component a resource stands for.
type places struct {
	config    *Config
	places    []place
	workloads []workload
	// seen is when a place was last in a frame, Unix ns.
	seen    []int64
	now     int64
	swept   int64
	byPlace map[place]placeID
	byName  map[string]int32
	cache   map[string]sender
	cached  int
	// spare places and workloads were let go of.
	sparePlaces    []placeID
	spareWorkloads []int32
	// instanceBytes is what the instances of all workloads cost.
	instanceBytes int
	// refused counts resources whose workload, component or instance was over a
	// limit.
	refusedWorkloads, refusedComponents, refusedInstances uint64
	// process is that of the resource at hand, where they are told apart.
	process string
}

func newPlaces(c *Config) *places {
	p := &places{
		config:  c,
		places:  []place{{workload: noWorkload}},
		seen:    []int64{0},
		byPlace: map[place]placeID{},
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

// of returns what a packed resource that came at p.now stands for.
func (p *places) of(packed []byte) sender {
	s, ok := p.cache[string(packed)]
	if !ok {
		refused := p.refused()
		s = p.resolve(codec.UnpackResource(packed))
		if p.refused() == refused { // else there may be room later
			p.remember(packed, s)
		}
	}
	p.seen[s.place] = p.now
	if s.instance != unnamed {
		p.workloads[p.places[s.place].workload].instances.known[s.instance].seen = p.now
	}
	return s
}

func (p *places) refused() uint64 {
	return p.refusedWorkloads + p.refusedComponents + p.refusedInstances
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

func (p *places) forgetResources() {
	clear(p.cache)
	p.cached = 0
}

func (p *places) resolve(attrs []trimtab.Attr) sender {
	service, _ := attribute(attrs, "service.name")
	service = cleanName(service)
	p.process = p.config.processOf(attrs)
	for i := range p.config.Workloads {
		if p.config.Workloads[i].fits(attrs) {
			version, _ := attribute(attrs, "service.version")
			p.workloads[i].running(service, version)
			place := p.component(int32(i), service)
			return sender{place, p.instance(i, attrs)}
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
		return sender{} // bears the name of a workload whose match it does not fit
	case !ok && len(p.byName) >= p.config.MaxWorkloads:
		p.refusedWorkloads++
		return sender{}
	case !ok:
		i = p.addWorkload(service, 0)
	}
	return sender{place: p.component(i, service)}
}

func (p *places) component(workload int32, service string) placeID {
	if service == "" {
		service = "unknown"
	}
	key := place{workload, service + p.process}
	if id, ok := p.byPlace[key]; ok {
		p.seen[id] = p.now // before anything is swept for its instance
		return id
	}
	p.workloads[workload].places++ // so that the sweep leaves it
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
	id := placeID(len(p.places))
	if n := len(p.sparePlaces); n > 0 {
		id, p.sparePlaces = p.sparePlaces[n-1], p.sparePlaces[:n-1]
	} else {
		p.places = append(p.places, place{})
		p.seen = append(p.seen, 0)
	}
	p.places[id] = key
	p.seen[id] = p.now
	p.byPlace[key] = id
	return id
}

// idle is how long a place must not have been seen before it is let go of: by
// then no held span and no open interval can refer to it.
func (p *places) idle() int64 {
	c := p.config
	return int64(max(10*time.Minute, 2*(c.Timeout+c.Grace+c.Every+c.Skew)))
}

// sweep lets go of places and instances that were not seen for long, and of the
// discovered workloads that are left without any, so that names which are no longer sent
// do not keep out new ones. It looks once a minute at most.
func (p *places) sweep() {
	if p.now-p.swept < int64(time.Minute) {
		return
	}
	p.swept = p.now
	for id := placeID(1); int(id) < len(p.places); id++ {
		key := p.places[id]
		if p.now-p.seen[id] <= p.idle() || p.byPlace[key] != id {
			continue
		}
		delete(p.byPlace, key)
		p.sparePlaces = append(p.sparePlaces, id)
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

// cleanName makes s fit for a name in a sketch: valid UTF-8 of at most
// maxName bytes.
func cleanName(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxName)], "?")
}
