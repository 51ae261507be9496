package haproxy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/trimtab/trimtab"
	"github.com/trimtab/trimtab/actuator"
	"github.com/trimtab/trimtab/internal/haproxy"
	"github.com/trimtab/trimtab/internal/hostfs"
)

// Kind describes this kind of knob. The root of a location is the socket. Its path is
// BACKEND/SERVER/* for one server and BACKEND/* for all of them, and BACKEND/MAP for a rate. Each
// server in each process of HAProxy is an instance, so a reload makes new instances. The kind does not
// measure how many requests a server could serve.
func Kind() actuator.Kind {
	return actuator.Kind{
		Name: "haproxy", Resources: []string{trimtab.Concurrency, trimtab.Rate},
		Probe: func(at actuator.Location) (actuator.Location, error) {
			if !at.Several() {
				_, err := rateAt(at)
				return at, err
			}
			_, err := configOf(at)
			return at, err
		},
		Find: find,
		Open: func(at actuator.Location, resource string) (actuator.Knob, error) {
			if resource == trimtab.Rate {
				c, err := rateAt(at)
				if err != nil {
					return nil, err
				}
				return actuator.OrNil(OpenRate(c))
			}
			c, err := configOf(at)
			if err != nil {
				return nil, err
			}
			return actuator.OrNil(Open(c))
		},
		Reopen: func(undo []byte) (actuator.Knob, error) {
			k, err := actuator.OrNil(Reopen(undo))
			if errors.Is(err, trimtab.ErrUnsupported) {
				return actuator.OrNil(ReopenRate(undo))
			}
			return k, err
		},
	}
}

// configOf converts a location into a configuration. The last element of the path is the server,
// unless it is "*".
func configOf(at actuator.Location) (Config, error) {
	backend, rest, _ := strings.Cut(at.Path, "/")
	c := Config{Socket: at.Root, Backend: backend, Server: strings.TrimSuffix(rest, "/*")}
	if c.Server != "*" {
		c.Server = path.Base(c.Server)
		return c, c.validate()
	}
	any := c
	any.Server = "any"
	return c, any.validate()
}

// find lists the server that a location names, or all servers of its backend.
func find(ctx context.Context, at actuator.Location) ([]actuator.Instance, error) {
	c, err := configOf(at)
	if err != nil {
		return nil, err
	}
	all, err := haproxy.Look(ctx, c.Socket, c.Backend)
	if err != nil {
		return nil, fmt.Errorf("find servers of backend %s: %w", c.Backend, err)
	}
	var found []actuator.Instance
	for _, s := range all.Servers {
		if c.Server == "*" || c.Server == s.Name {
			found = append(found, actuator.Instance{Name: s.Name, ID: idOf(all.Of, s.ID)})
		}
	}
	switch {
	case len(found) == 0 && c.Server != "*":
		return nil, fmt.Errorf("find servers of backend %s: HAProxy has no server %s in it: `show servers state %[1]s` lists them: %[3]w", c.Backend, c.Server, os.ErrNotExist)
	case len(found) > hostfs.MaxInstances:
		return nil, fmt.Errorf("find servers of backend %s: there are %d, at most %d may be: %w", c.Backend, len(found), hostfs.MaxInstances, trimtab.ErrRefused)
	}
	slices.SortFunc(found, func(a, b actuator.Instance) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}

// idOf returns a number that differs for the same server in two processes of HAProxy.
func idOf(of haproxy.Process, id string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(string(of) + "\x00" + id))
	return max(h.Sum64(), 1)
}
