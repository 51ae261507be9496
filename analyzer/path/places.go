package path

import (
	"strings"

	"github.com/trimtab/trimtab"
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
}

// places knows which workload and component a resource stands for.
type places struct {
	config    *Config
	places    []place
	workloads []workload
	// components counts places that are not nowhere or Other.
	components int
	byPlace    map[place]placeID
	byName     map[string]int32
	cache      map[string]placeID
	cached     int
	// refused counts resources whose workload or component was over a limit.
	refusedWorkloads, refusedComponents uint64
}

func newPlaces(c *Config) *places {
	p := &places{
		config:  c,
		places:  []place{{workload: noWorkload}},
		byPlace: map[place]placeID{},
		byName:  map[string]int32{},
		cache:   map[string]placeID{},
	}
	for _, m := range c.Workloads {
		p.addWorkload(m.Name, int64(m.Threshold))
	}
	return p
}

func (p *places) addWorkload(name string, threshold int64) int32 {
	i := int32(len(p.workloads))
	p.workloads = append(p.workloads, workload{name, threshold})
	p.byName[name] = i
	return i
}

// of returns the place of a packed resource.
func (p *places) of(packed []byte) placeID {
	if id, ok := p.cache[string(packed)]; ok {
		return id
	}
	id := p.resolve(trimtab.UnpackResource(packed))
	if len(packed) > maxCachedBytes/64 {
		return id
	}
	if len(p.cache) >= maxCached || p.cached+len(packed) > maxCachedBytes {
		clear(p.cache)
		p.cached = 0
	}
	p.cache[string(packed)] = id
	p.cached += len(packed)
	return id
}

func (p *places) resolve(attrs []trimtab.Attr) placeID {
	service, _ := attribute(attrs, "service.name")
	service = cleanName(service)
	for i := range p.config.Workloads {
		if p.config.Workloads[i].fits(attrs) {
			return p.component(int32(i), service)
		}
	}
	if !p.config.Discover || service == "" {
		return nowhere
	}
	i, ok := p.byName[service]
	switch {
	case ok && int(i) < len(p.config.Workloads):
		return nowhere // bears the name of a workload whose match it does not fit
	case !ok && len(p.workloads) >= p.config.MaxWorkloads:
		p.refusedWorkloads++
		return nowhere
	case !ok:
		i = p.addWorkload(service, 0)
	}
	return p.component(i, service)
}

func (p *places) component(workload int32, service string) placeID {
	if service == "" {
		service = "unknown"
	}
	key := place{workload, service}
	if id, ok := p.byPlace[key]; ok {
		return id
	}
	if p.components >= p.config.MaxComponents {
		p.refusedComponents++
		key.component = Other
		if id, ok := p.byPlace[key]; ok {
			return id
		}
	}
	p.components++
	id := placeID(len(p.places))
	p.places = append(p.places, key)
	p.byPlace[key] = id
	return id
}

// cleanName makes s fit for a name in a sketch: valid UTF-8 of at most
// maxName bytes.
func cleanName(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxName)], "?")
}
